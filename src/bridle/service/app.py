"""The service as an ASGI application: its life, its door, its routes and its document."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.middleware import Middleware
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from bridle import __version__
from bridle.service.calls import json_answer
from bridle.service.door import Door, FrontDoor
from bridle.service.live import LivePictures
from bridle.service.logs import request_id
from bridle.service.page import ServiceWatch
from bridle.service.routes import add_routes, hot_routes
from bridle.service.service import Service


async def not_found(request: Request, wrong: Exception) -> Response:
    """What no route answers, as every other error."""
    assert isinstance(wrong, HTTPException)
    text = f"there is no {request.method} {request.url.path[:200]}" if wrong.status_code in (404, 405) else str(wrong.detail)
    return json_answer({"error": text, "request": request_id.get()}, wrong.status_code)


def front_door(service: Service) -> FrontDoor:
    """What serves this service: its hot routes, and the application behind them."""
    return FrontDoor(make_app(service), service.metrics, service.access, hot_routes(service))


def make_app(service: Service) -> FastAPI:
    """The application that has all routes of this service, and the document of them."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    app = FastAPI(
        title="bridle",
        version=__version__,
        summary="Decisions made online under constraints that are revealed too late",
        lifespan=life,
        middleware=[Middleware(Door, metrics=service.metrics, log=service.access)],
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.add_exception_handler(HTTPException, not_found)
    app.state.service = service
    app.state.pictures = LivePictures(ServiceWatch(service))
    add_routes(app, service)
    return app
