"""A session that this server owns: requests take turns in the order in which they came, and none is answered before what it rests on is durable.

An event is applied in memory and queued for the writer while the session is held; then the session is let go, so that the next event can join the same
commit, and the answer waits for it. Reading waits for the last commit in the same way. What takes long is done in a thread of its own, while the
session is held and the others go on. After a failed commit the memory is ahead of the disk: the session is made again from its journal.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from bridle.core import InputError, Unavailable
