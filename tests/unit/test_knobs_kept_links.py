"""Connections that are made once: a real server counts them, and the program gets the same answers."""

from __future__ import annotations

import socketserver
import threading

import pytest
from knob_runs import applied, candidate_here

from trainflash.errors import UsageError

HEAD = "import http.client\nimport socket\nfrom contextlib import contextmanager\n\n\n"
FORMS = {
    "a library's, in a block": """
def ask(number):
    with socket.create_connection(ADDRESS) as link:  # here
        link.sendall(b"%d\\n" % number)
        return link.recv(64)


def work():
    return [ask(number) for number in range(5)]
""",
    "ended by a call, with options": """
def ask(number):
    link = socket.create_connection(ADDRESS, timeout=5)  # here
    link.sendall(b"%d\\n" % number)
    answer = link.recv(64)
    link.close()
    return answer


def work():
    return [ask(number) for number in range(5)]
""",
    "signed in by a method, and handed out": """
def take(link):
    return link.recv(64)  # here


class Visitor:
    def sign_in(self):
        link = socket.socket()
        link.connect(ADDRESS)
        return link

    @contextmanager
    def visit(self):
        with self.sign_in() as link:
            yield link

    def ask(self, number):
        with self.visit() as link:
            link.sendall(b"%d\\n" % number)
            return take(link)


def work():
    visitor = Visitor()
    return [visitor.ask(number) for number in range(5)]
""",
}


class Doubles(socketserver.StreamRequestHandler):
    def handle(self):
        self.server.connections += 1
        for line in self.rfile:
            self.wfile.write(b"%d" % (2 * int(line)))


@pytest.fixture
def server():
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Doubles) as serving:
        serving.daemon_threads, serving.connections = True, 0
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield serving
        serving.shutdown()


def outcome(source, address):
    space: dict = {"ADDRESS": address}
    exec(compile(source, "train.py", "exec"), space)
    answers = space["work"]()
    for link in space.get("LINKS", {}).values():
        link.close()
    return answers


@pytest.mark.parametrize("form", FORMS)
def test_one_connection_gives_the_same_answers(tmp_path, server, form):
    source = HEAD + FORMS[form].lstrip("\n")
    changed = applied(tmp_path, candidate_here(tmp_path, "kept_link", source).diff)["train.py"]
    before = outcome(source, server.server_address)
    assert (before, server.connections) == ([b"0", b"2", b"4", b"6", b"8"], 5)
    assert outcome(changed, server.server_address) == before
    assert server.connections == 6


def test_each_thread_has_its_own(tmp_path, server):
    source = HEAD + FORMS["a library's, in a block"].lstrip("\n").replace(
        "    return [ask(number) for number in range(5)]",
        "    with ThreadPoolExecutor(1) as pool:\n        return [*map(ask, range(3)), *pool.map(ask, range(2))]",
    )
    source = f"from concurrent.futures import ThreadPoolExecutor\n{source}"
    changed = applied(tmp_path, candidate_here(tmp_path, "kept_link", source).diff)["train.py"]
    assert outcome(changed, server.server_address) == [b"0", b"2", b"4", b"0", b"2"]
    assert server.connections == 2


CAUGHT = """
    try:
        with socket.create_connection(A) as link:  # here
            return link.recv(9)
    except OSError:
        return b''
"""


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (CAUGHT, "is caught"),
        ("    with socket.create_connection(*A) as link:  # here\n        return link.recv(9)", "cannot be told"),
        ("    link = socket.create_connection(A)  # here\n    return link.recv(9)", "no connection is made and ended again"),
        ("    with open(A) as link:  # here\n        return link.read(9)", "no connection is made and ended again"),
    ],
    ids=["caught", "unpacked", "never ended", "a file"],
)  # fmt: skip
def test_other_uses_are_left(tmp_path, body, says):
    with pytest.raises(UsageError, match=says):
        candidate_here(tmp_path, "kept_link", f"{HEAD}def ask():\n{body}\n")


def test_two_connections_that_no_line_tells_apart(tmp_path):
    source = f"{HEAD}def one():\n    with socket.create_connection(A) as link:\n        return link.recv(9)\n\n\n"
    source += source.split("\n\n\n")[1].replace("one", "other") + "\n\n\ndef wait():\n    return 1  # here\n"
    with pytest.raises(UsageError, match="no connection is made and ended again near this line"):
        candidate_here(tmp_path, "kept_link", source)


@pytest.mark.parametrize("address", [list, tuple])
def test_an_address_may_be_a_list(tmp_path, server, address):
    source = HEAD + FORMS["a library's, in a block"].lstrip("\n")
    changed = applied(tmp_path, candidate_here(tmp_path, "kept_link", source).diff)["train.py"]
    assert outcome(changed, address(server.server_address)) == [b"0", b"2", b"4", b"6", b"8"]
    assert server.connections == 1


def test_exactly_as_much_as_an_answer_has_is_read(tmp_path, server):
    take = """
def take(link):
    data = b""  # here
    while len(data) < 1:
        part = link.recv(1 - len(data))
        if not part:
            return None
        data += part
    return data
"""
    source = HEAD + FORMS["signed in by a method, and handed out"].lstrip("\n")
    source = source.replace("def take(link):\n    return link.recv(64)  # here\n", take.lstrip("\n")).replace(
        "    data = b", "    # here\n    data = b"
    )
    changed = applied(tmp_path, candidate_here(tmp_path, "kept_link", source).diff)["train.py"]
    assert outcome(changed, server.server_address) == [b"0", b"2", b"4", b"6", b"8"]
    assert server.connections == 1
