"""Where work is done: in this process, in processes of this machine (joblib's loky), or on a Dask cluster.

All three have the interface of `concurrent.futures`: `submit` gives a future. What they add is how many tasks to hand out at once, which
errors mean that a worker was lost rather than that the work failed, and how to begin anew after that.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any, ParamSpec, TypeVar

from bridle import validate
from bridle.core import InputError
from bridle.engines.round import cores

P = ParamSpec("P")
R = TypeVar("R")


class Executor:
    """Runs functions somewhere and gives futures of what they return. As it is: in this process, while a task is handed out."""

    lost: tuple[type[BaseException], ...] = ()
    """What a future raises whose worker was lost."""
    survives = True
    """Whether other workers go on where one is lost."""

    def workers(self) -> int:
        """How many tasks can run at a time, at present."""
        return 1

    def ahead(self) -> int:
        """How many tasks to have handed out at a time."""
        return self.workers()

    def submit(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Hand out a task."""
        future: Future[R] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    def expect(self, seconds: float) -> None:
        """So much work is left, in seconds of one worker, by what the last task took."""

    def renew(self) -> None:
        """Begin anew after a worker was lost; tasks that were handed out must be handed out again if their futures failed."""

    def close(self) -> None:
        """Stop, also what is running."""


def executor(jobs: int | None = None, dask: str | None = None) -> Executor:
    """The executor for so many processes of this machine, or for the Dask cluster at an address.

    By default it is this process, and one for each core once they are worth their start.

    >>> executor(jobs=1).submit(sum, [1, 2, 3]).result()
    6
    """
    if dask is not None:
        validate.require_package("distributed", "dask")
        return Cluster(dask)
    if jobs is not None:
        jobs = validate.whole("jobs", jobs)
    if jobs == 1:
        return Here()
    validate.require_package("joblib", "report")
    return Growing() if jobs is None else Processes(jobs)


class Here(Executor):
    """This process."""


FEEDER = 5.0
"""Seconds to wait for the thread that hands tasks to the workers: it may hang on a large task that no worker reads any more."""


class Processes(Executor):
    """Processes of this machine, one task and one thread of linear algebra each."""

    lost = (BrokenExecutor,)
    survives = False

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.waiting: list[Future[Any]] = []
        self.pool = self._start()

    def _start(self) -> Any:
        from joblib.externals.loky import ProcessPoolExecutor

        flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        env = {**threads, "XLA_FLAGS": flags.strip()}
        with _ctrl_c_later():
            return ProcessPoolExecutor(self.jobs, env=env, initializer=stay_close, initargs=(os.getpid(),))

    def workers(self) -> int:
        return self.jobs

    def ahead(self) -> int:
        return 2 * self.jobs  # so that no worker waits for the next task

    def submit(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        with _ctrl_c_later():
            future: Future[R] = self.pool.submit(function, *args, **kwargs)
            self.waiting = [each for each in self.waiting if not _taken(each)] + [future]
        return future

    def renew(self) -> None:
        self.close()
        self.pool = self._start()

    def close(self) -> None:
        # A pool that is shut down before it has taken a task up prints a KeyError. It has room for `ahead` tasks, so this takes no time.
        while not all(map(_taken, self.waiting)):
            time.sleep(0.001)
        feeder = getattr(self.pool._call_queue, "_thread", None)
        self.pool.shutdown(wait=True, kill_workers=True)
        if feeder is not None:  # loky does not wait for it: at exit it could be stopped while it removes a semaphore, with a warning
            feeder.join(FEEDER)


def _taken(future: Future[Any]) -> bool:
    return future.running() or future.done()


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Hold Ctrl-C back until the block ends; processes that start in it never see it (on Windows, once `stay_close` has run).

    A pool that is interrupted while it starts leaves semaphores behind, and a worker that is still importing answers with a traceback.
    """
    came: list[int] = []
    posix = os.name == "posix"
    if posix:
        resource_tracker.ensure_running()  # a pool that starts it would unblock the signal
    # Other threads never see KeyboardInterrupt; and a handler that is not Python's could not be put back.
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is not None
    handler = signal.signal(signal.SIGINT, lambda number, frame: came.append(number)) if ours else None
    try:
        if posix:
            blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            if posix:
                signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    finally:
        if ours:
            signal.signal(signal.SIGINT, handler)
        if came:
            signal.raise_signal(signal.SIGINT)


def stay_close(parent: int) -> None:
    """What a worker process begins with: Ctrl-C is its parent's business, and where that is gone (kill -9), it goes too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


WORTHWHILE = 5.0
"""Seconds of work that must be left for processes to be started: each imports everything anew."""


class Growing(Executor):
    """This process at first, and one for each core once enough work is left."""

    def __init__(self) -> None:
        self.pool: Executor = Here()

    def workers(self) -> int:
        return cores() if isinstance(self.pool, Here) else self.pool.workers()

    def ahead(self) -> int:
        return self.pool.ahead()

    def submit(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        return self.pool.submit(function, *args, **kwargs)

    def expect(self, seconds: float) -> None:
        if isinstance(self.pool, Here) and seconds > WORTHWHILE:
            from joblib import cpu_count

            if (jobs := int(cpu_count())) > 1:
                self.pool = Processes(jobs)
                self.lost, self.survives = self.pool.lost, self.pool.survives

    def renew(self) -> None:
        self.pool.renew()

    def close(self) -> None:
        self.pool.close()


class Cluster(Executor):
    """A Dask cluster: at the address of its scheduler, or by the file that a scheduler writes.

    There is nothing to renew: Dask runs on, and does a lost worker's tasks again itself; it gives up one that loses too many.
    """

    def __init__(self, address: str) -> None:
        from distributed import Client as Connect
        from distributed import KilledWorker

        Client: Any = Connect  # it has no types
        self.lost = (KilledWorker, CancelledError)
        self.address = address
        try:
            where = {"scheduler_file": address} if os.path.isfile(address) else {"address": address}
            self.client: Any = Client(**where, timeout=20)
        except (OSError, ValueError, TypeError, ImportError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise InputError(f"cannot reach a Dask scheduler at {address}: {reason}") from None
        self.pool: Any = self.client.get_executor(pure=False)

    def workers(self) -> int:
        return sum(self.client.nthreads().values()) if self.client.status == "running" else 0

    def ahead(self) -> int:
        return max(200, 2 * self.workers())  # a cluster that grows with the work must see that there is some

    def submit(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        if self.client.status != "running":
            raise InputError(f"the Dask cluster at {self.address} is gone")
        future: Future[R] = self.pool.submit(function, *args, **kwargs)
        return future

    def close(self) -> None:
        try:
            self.pool.shutdown(wait=False)
        finally:
            self.client.close()
