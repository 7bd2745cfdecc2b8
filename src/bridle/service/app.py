"""The service as an ASGI application: its life, its door, its routes and its document."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.middleware import Middleware

from bridle import __version__
from bridle.service.door import Door
from bridle.service.live import LivePictures
from bridle.service.page import ServiceWatch
from bridle.service.routes import add_routes
from bridle.service.service import Service


def make_app(service: Service) -> FastAPI:
    """The application that serves this service."""

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
        middleware=[Middleware(Door, metrics=service.metrics)],
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.service = service
    app.state.pictures = LivePictures(ServiceWatch(service))
    add_routes(app, service)
    return app
