"""The socket that the processes of the role share."""

import socket

import pytest

from app.api.server import VANISHED_AFTER_MS, listen
from tests.support.api import settings_for_tests


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux has it")
def test_connections_of_phones_that_vanished_end_soon() -> None:
    settings = settings_for_tests(host="127.0.0.1").model_copy(update={"port": 0})
    with listen(settings) as listener, socket.create_connection(listener.getsockname(), timeout=5):
        listener.settimeout(5)
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == VANISHED_AFTER_MS
