"""What each token may do by HTTP: the real server, its refusals, the headers of every answer."""

from __future__ import annotations

import hashlib
import json
import logging
import socket

import pytest
from coordinator_server import LOG_LINE, TOKEN, Served, small_model

from homeport.config.access_tokens import digest_of
from homeport.config.declarations import all_keys as keys
from homeport.job_coordinator.access.job_access import ACCESS_ROUTE
from homeport.job_coordinator.http.port.connections import LIMIT

OPERATE, READ = "an-operators-token", "a-readers-token"
OLD = "the-operators-token-before"


def bearer(token: str) -> str:
    """The header's value."""
    return f"Bearer {token}"


@pytest.fixture(autouse=True)
def _tokens(served: Served) -> None:
    """Ada operates, by either of two tokens; eve reads."""
    served.backend.models[None] = small_model(
        **{
            keys.JOB_COORDINATOR_OPERATE_TOKENS.name: ",".join(
                f"ada:{digest_of(token.encode())}" for token in (OLD, OPERATE)
            ),
            keys.JOB_COORDINATOR_READ_TOKENS.name: f"eve:{digest_of(READ.encode())}",
        }
    )


@pytest.mark.parametrize(
    ("token", "has_secrets", "has_lines"),
    [(TOKEN, True, True), (OPERATE, False, True), (READ, False, True), (None, False, False)],
)
def test_what_each_role_is_shown(
    served: Served, token: str | None, *, has_secrets: bool, has_lines: bool
) -> None:
    """Secrets: the job's own programs alone. Log lines: each token."""
    headers = {} if token is None else {"Authorization": bearer(token)}
    config = json.loads(served.call("GET", "/config", None, **headers)[2])
    assert (config["db.password"] == "pw") is has_secrets
    status = served.call("GET", "/v1/status", None, **headers)[2].decode()
    assert (LOG_LINE in status) is has_lines


@pytest.mark.parametrize("path", ["check-in", "started", "stopped", "unfit"])
def test_what_only_a_launcher_knows_is_taken_from_launchers_alone(
    served: Served, path: str
) -> None:
    """An operator's token reports no start and no end of a container."""
    error = served.error("POST", f"/v1/{path}", b"{}", Authorization=bearer(OPERATE))
    assert error == "403 the token ada has the role operate: this request needs job"


def test_a_package_is_for_the_jobs_own_programs_alone(served: Served) -> None:
    """It is the job's code: neither a token to read nor one to operate shows it."""
    data = b"PK the code"
    name = hashlib.sha256(data).hexdigest()
    served.backend.packages[name] = data
    path = f"/v1/packages/{name}"
    assert served.error("GET", path) == "401 a bearer token is needed"
    for token, holder in ((READ, "eve has the role read"), (OPERATE, "ada has the role operate")):
        error = served.error("GET", path, Authorization=bearer(token))
        assert error == f"403 the token {holder}: this request needs job"
        assert served.call("HEAD", path, Authorization=bearer(token))[0] == 403
    assert served.backend.looked == []
    status, headers, body = served.call("GET", path, Authorization=bearer(TOKEN))
    assert (status, headers["content-type"], body) == (200, "application/zip", data)
    assert headers["cache-control"] == "private, no-cache"


def test_each_of_two_tokens_ends_the_job_and_is_in_the_trail(served: Served) -> None:
    """While one is rotated; afterwards the old one is wrong, in the server that runs."""
    for token in (OLD, OPERATE):
        assert served.call("POST", "/v1/shutdown", b"{}", Authorization=bearer(token))[0] == 200
    served.backend.models[None] = small_model(
        **{keys.JOB_COORDINATOR_OPERATE_TOKENS.name: f"ada:{digest_of(OPERATE.encode())}"}
    )
    assert served.call("POST", "/v1/shutdown", b"{}", Authorization=bearer(OLD))[0] == 401
    assert served.call("POST", "/v1/shutdown", b"{}", Authorization=bearer(OPERATE))[0] == 200
    changes = json.loads(served.call("GET", "/v1/audit", Authorization=bearer(TOKEN))[2])["changes"]
    assert [(c["author"], c["address"], c["what"], c["after"]) for c in changes] == [
        ("ada", "127.0.0.1", "the job", "is to end")
    ] * 3


def test_a_guesser_has_to_wait_and_the_launchers_beside_it_have_not(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """Then not even a right token of an operator is looked at, so a guess has no answer."""
    with caplog.at_level(logging.WARNING):
        for number in range(LIMIT):
            assert served.call("GET", "/", Authorization=bearer(f"guess{number}"))[0] == 401
        for token in ("another", OPERATE):
            status, headers, content = served.call("GET", "/", Authorization=bearer(token))
            assert status == 429
            assert 0 < int(headers["retry-after"]) <= 60
            assert b"10 wrong tokens have come from this address" in content
    assert [m for m in caplog.messages if "wrong tokens" in m] == [
        "10 wrong tokens have come from 127.0.0.1 within a minute"
    ]
    assert served.call("GET", "/", Authorization=bearer(TOKEN))[0] == 200
    assert served.call("GET", "/")[0] == 200


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.example"}, {"Sec_Fetch_Site": "cross-site"}]
)
def test_a_page_of_another_server_changes_nothing(served: Served, headers: dict[str, str]) -> None:
    """Not even with a token that it might have come by."""
    error = served.error("POST", "/v1/shutdown", b"{}", Authorization=bearer(TOKEN), **headers)
    assert error == "403 a page of another server has made this request"
    own = {"Origin": f"http://127.0.0.1:{served.port}", "Sec_Fetch_Site": "same-origin"}
    status, _, _ = served.call("POST", "/v1/shutdown", b"{}", Authorization=bearer(TOKEN), **own)
    assert status == 200


@pytest.mark.parametrize("path", ["/", "/v1/status", "/metrics", "/nothing", "/ui/", "/ui/main.js"])
def test_every_answer_has_the_headers_of_safety(served: Served, path: str) -> None:
    """Errors too; no header names a version, and no other server's page may read an answer."""
    _, headers, _ = served.call("GET", path, Origin="http://evil.example")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["server"] == "homeport"
    assert not [name for name in headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/", "/nothing"])
@pytest.mark.parametrize("expected", ["100-continu\xcc", "200-ok"])
def test_an_expectation_that_is_not_met_is_no_fault(
    served: Served, path: str, expected: str
) -> None:
    """Whatever its bytes; the one that there is goes on."""
    error = served.error("POST", path, b"{}", Expect=expected)
    assert error == "417 no expectation but 100-continue is met"
    assert served.call("GET", "/health", Expect="100-continue")[0] == 200


def test_the_log_of_what_is_no_http_quotes_nothing_and_ends(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """A token with a character too many is still a token; a flood is not logged line by line."""
    for _ in range(100):
        with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
            connection.sendall(
                f"GET / HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\x01\r\n\r\n".encode()
            )
            assert connection.recv(1_000).startswith(b"HTTP/1.0 400")
    assert TOKEN not in caplog.text
    lines = [record for record in caplog.records if record.name.endswith("http.server")]
    assert len(lines) == 61
    assert "Invalid header value char" in caplog.messages[0]
    assert caplog.messages[-1].startswith("further requests that are no HTTP are not logged")


def test_a_browser_is_not_allowed_to_send_the_token_from_elsewhere(served: Served) -> None:
    """The question that it asks first, without a token, is refused."""
    status, headers, _ = served.call(
        "OPTIONS",
        "/ui/actions/move",
        Origin="http://evil.example",
        Access_Control_Request_Method="POST",
        Access_Control_Request_Headers="authorization",
    )
    assert status == 403
    assert not [name for name in headers if name.startswith("access-control")]


def _raw(served: Served, *hosts: str) -> str:
    """The status line of a request with these headers ``Host``."""
    lines = "".join(f"Host: {host}\r\n" for host in hosts)
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
        connection.sendall(f"GET /v1/status HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    assert b"Server: homeport\r\n" in answer
    assert b"X-Frame-Options: DENY\r\n" in answer
    return answer.partition(b"\r\n")[0].decode()


@pytest.mark.parametrize(
    "path", ["/", "/v1/status", "/config", "/v1/events", "/ui/state", "/ui/stream", "/ui/", "/no"]
)
def test_a_page_with_a_name_of_its_own_reads_nothing(served: Served, path: str) -> None:
    """It has had its name resolved to this server; with a token the request is no page's."""
    error = served.error("GET", path, Host="evil.example:80", X_Forwarded_Host="127.0.0.1")
    assert error.startswith("421 Host is 'evil.example:80': it must be an address, or a name of ")
    assert error.endswith("or add the name to cluster-manager.jobcoordinator.url.names")
    if path != "/ui/stream":
        asked = served.call("GET", path, Host="evil.example", Authorization=bearer(READ))
        assert asked[0] in {200, 404}


def test_the_names_of_this_machine_and_those_that_are_set_are_its_own(served: Served) -> None:
    """A change of the key counts at once."""
    for host in ("127.0.0.1", "[::1]:99", "localhost:1", socket.gethostname(), socket.getfqdn()):
        assert _raw(served, host).endswith(" 200 OK")
    assert " 421 " in _raw(served, "jobs.example.com")
    served.server.known_as("nm7")
    assert _raw(served, "nm7:8088").endswith(" 200 OK")
    names = {keys.JOB_COORDINATOR_URL_NAMES.name: "a.example, jobs.example.com"}
    served.backend.models[None] = small_model(**names)
    assert _raw(served, "jobs.example.com").endswith(" 200 OK")
    assert " 400 " in _raw(served, "127.0.0.1", "evil.example")


CLOSED = {keys.JOB_COORDINATOR_READ_OPEN.name: "false"}


def test_closed_reading_needs_a_token_for_all_but_the_empty_page(served: Served) -> None:
    """Each route that shows something of the job, and the unknown ones; the page asks for one."""
    read = {keys.JOB_COORDINATOR_READ_TOKENS.name: f"eve:{digest_of(READ.encode())}"}
    served.backend.models[None] = small_model(**CLOSED, **read)
    port = served.server._port
    assert port is not None
    routes = {r.resource.canonical for r in port._runner.app.router.routes() if r.resource}
    # What that answers proves the server, and shows nothing of the job.
    assert served.call("GET", ACCESS_ROUTE)[0] == 400
    for route in sorted(routes - {ACCESS_ROUTE} | {"/no"}):
        path = route.format(file="main.js", name="0", uuid="0" * 36, processor_id="0", action="x")
        for method in ("GET", "HEAD"):
            status = served.call(method, path)[0]
            is_file = route in {"/ui", "/ui/", "/ui/{file}"}
            assert (status in {200, 308}) if is_file else (status == 401), (method, route)
            if is_file or route == "/ui/stream":
                continue
            assert served.call(method, path, Authorization=bearer(READ))[0] != 401
            assert served.call(method, path, Authorization=bearer(TOKEN))[0] < 500
    assert served.call("GET", "/v1/status", Authorization=bearer(READ))[0] == 200


@pytest.mark.parametrize(
    "sent",
    [
        "\x16\x03%s %d\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "G\x01T / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nX: a\x00b\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + "x" * 20_000 + "\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 200-ok\r\n\r\n",
    ],
)
def test_what_reaches_no_route_has_the_headers_of_safety_too(served: Served, sent: str) -> None:
    """In the form of every error, with nothing that was sent, and no version of the server."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
        connection.sendall(sent.encode())
        answer = b""
        while b"}" not in answer and (part := connection.recv(65_536)):
            answer += part
    head, _, body = answer.decode().partition("\r\n\r\n")
    assert head.split()[1] in {"400", "417"}
    headers = dict(line.split(": ", 1) for line in head.splitlines()[1:])
    assert headers["Server"] == "homeport"
    for name in ("Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options"):
        assert headers[name]
    assert "aiohttp" not in answer.decode()
    assert list(json.loads(body)) == ["error"]
