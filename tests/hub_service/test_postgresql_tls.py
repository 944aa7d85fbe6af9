"""The service whose PostgreSQL is on another machine, behind TLS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from bench.hub_clients import call
from bench.hub_service import Service
from tests.certificates import make_certificate
from tests.ports import kept_port
from tests.postgresql import PostgreSQL

PASSWORD = "hunter2"


@dataclass(frozen=True, slots=True)
class Remote:
    """A database behind TLS.

    Attributes
    ----------
    direct : str
        Its URL on this machine, without.
    address : str
        Its URL on the network, up to the mode.
    authority, other : Path
        The file with the authority of its certificate, and one with another.
    """

    direct: str
    address: str
    authority: Path
    other: Path


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    pytest.importorskip("psycopg")
    certificate, directory = make_certificate(), tmp_path_factory.mktemp("authorities")
    authority, other = directory / "authority.pem", directory / "other.pem"
    authority.write_bytes(certificate.certificate)
    other.write_bytes(make_certificate().certificate)
    with kept_port() as port:
        try:
            server = PostgreSQL(tls=certificate, port=port)
        except FileNotFoundError as error:
            pytest.skip(str(error))
        server.start()
    try:
        direct = server.make_database()
        engine = create_engine(direct)
        with engine.begin() as connection:
            connection.execute(text(f"ALTER ROLE agentbox PASSWORD '{PASSWORD}'"))
        engine.dispose()
        address = f"postgresql+psycopg://agentbox:{PASSWORD}@localhost:{port}/store0?hostaddr=127.0.0.1&sslmode="
        yield Remote(direct, address, authority, other)
    finally:
        server.stop()
        server.remove()


async def test_a_service_that_checks_the_certificate_works_and_is_encrypted(tmp_path: Path, remote: Remote) -> None:
    service = Service(tmp_path, f"{remote.address}verify-full&sslrootcert={remote.authority}")
    try:
        await service.start()
        assert (await call(service, "ada", "allowed", "c1")).state == "succeeded"
        engine = create_engine(remote.direct)
        with engine.connect() as connection:
            query = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE client_addr IS NOT NULL"
            encrypted = connection.scalars(text(query)).all()
        engine.dispose()
        assert encrypted
        assert all(encrypted)
    finally:
        service.end()


@pytest.mark.parametrize(
    ("kept", "starts"), [(PASSWORD, True), ("another", False)], ids=["the password", "another one"]
)
async def test_the_password_may_be_in_a_file_that_the_url_names(
    tmp_path: Path, remote: Remote, kept: str, starts: bool
) -> None:
    passwords = tmp_path / "passwords"
    passwords.write_text(f"localhost:*:*:agentbox:{kept}\n")
    passwords.chmod(0o600)
    url = f"{remote.address}require&passfile={passwords}".replace(f":{PASSWORD}@", "@")
    service = Service(tmp_path, url)
    try:
        if starts:
            await service.start()
            assert (await call(service, "ada", "allowed", "c1")).state == "succeeded"
        else:
            with pytest.raises(RuntimeError, match="password authentication failed"):
                await service.start()
    finally:
        service.end()


@pytest.mark.parametrize(
    ("mode", "host", "why"),
    [
        ("verify-full&sslrootcert={other}", "localhost", "certificate was not accepted: `sslrootcert`"),
        ("verify-full&sslrootcert={authority}", "db.example", "certificate was not accepted: `sslrootcert`"),
        ("verify-full&sslrootcert=/nowhere/ca.pem", "localhost", "/nowhere/ca.pem"),
        ("disable", "localhost", "no encryption"),
    ],
)
async def test_a_service_that_cannot_trust_its_database_ends_and_says_why(
    tmp_path: Path, remote: Remote, mode: str, host: str, why: str
) -> None:
    mode = mode.format(authority=remote.authority, other=remote.other)
    service = Service(tmp_path, f"{remote.address}{mode}".replace("localhost", host))
    try:
        with pytest.raises(RuntimeError) as ended:
            await service.start()
    finally:
        service.end()
    told = str(ended.value)
    assert f"the service cannot run: the approval store `postgresql+psycopg://agentbox:***@{host}:" in told
    assert why in told
    assert "Traceback" not in told
    assert "hunter2" not in told
