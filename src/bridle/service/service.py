"""What a server has: the database, the writer, the thread for slow things, the keys, and the sessions that it owns."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from bridle.core import InputError, Unavailable
from bridle.database import open_store
from bridle.database.rows import AccessKey, Found, Owned, StoreError
from bridle.database.store import EventStore
from bridle.service.auth import who
from bridle.service.config import ServiceConfig
from bridle.service.errors import CONFLICT, NOT_FOUND, Turned, too_many, unavailable
from bridle.service.hosted import Hosted, Tools
from bridle.service.keyring import KeyRing
from bridle.service.logs import LOG, log
from bridle.service.metrics import ServiceMetrics, SessionFigures
from bridle.service.recipes import session_name, session_recipe
from bridle.service.writer import Writer

T = TypeVar("T")

SHOWN = 4096
"""So many bytes of a refused request are kept in the quarantine."""

NOT_YET = "the service is starting: try again in a moment"
NO_MORE = "the service is stopping: try again in a moment"
