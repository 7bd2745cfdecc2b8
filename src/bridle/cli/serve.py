"""The command `bridle serve`: the decision service."""

from __future__ import annotations

from typing import Annotated

import typer


def serve(
    config: Annotated[str | None, typer.Option(metavar="FILE", help="A bridle.toml: database, address, limits, sessions.")] = None,
    db: Annotated[
        str | None, typer.Option(metavar="URL", help="The database: sqlite:///bridle.db unless told, or postgresql://...")
    ] = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on: 127.0.0.1 unless told.")] = None,
    port: Annotated[int | None, typer.Option(help="The port: 8711 unless told; 0 for any that is free.")] = None,
    url: Annotated[str | None, typer.Option(help="Where clients reach this server, for others that share its database.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Ask for no keys; on this machine alone.")] = False,
    tls_cert: Annotated[str | None, typer.Option(metavar="FILE", help="The server's certificate, with --tls-key.")] = None,
    tls_key: Annotated[str | None, typer.Option(metavar="FILE", help="The key of the certificate.")] = None,
    log: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
) -> None:
    """Serve sessions by name over HTTP.

    Each decision and each observation is durable before it is answered.
    """
    from bridle import validate

    for package in ("sqlalchemy", "starlette", "uvicorn", "msgspec", "prometheus_client"):
        validate.require_package(package, "serve")
    from bridle.service.config import read_config
    from bridle.service.server import run

    told = read_config(
        config, db=db, host=host, port=port, url=url, insecure=insecure or None, tls_cert=tls_cert, tls_key=tls_key, log=log
    )  # fmt: skip
    run(told)
