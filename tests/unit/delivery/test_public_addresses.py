"""Webhooks must not reach addresses inside our own network."""

import socket
import threading

import pytest

from app.delivery.channels.public_addresses import PrivateAddress, Resolver, is_public, look_up, require_public

PRIVATE = {
    "loopback": "127.0.0.1",
    "all of loopback": "127.255.255.254",
    "private 10": "10.0.0.1",
    "private 172": "172.16.0.1",
    "end of private 172": "172.31.255.255",
    "private 192": "192.168.1.1",
    "shared by a provider's customers": "100.64.0.1",
    "end of shared": "100.127.255.255",
    "link-local": "169.254.1.1",
    "metadata of the cloud": "169.254.169.254",
    "unspecified": "0.0.0.0",
    "this network": "0.1.2.3",
    "protocols": "192.0.0.8",
    "documentation": "192.0.2.1",
    "other documentation": "203.0.113.9",
    "6to4 relay": "192.88.99.1",
    "benchmarks": "198.19.0.1",
    "multicast": "224.0.0.1",
    "reserved": "240.0.0.1",
    "broadcast": "255.255.255.255",
    "loopback 6": "::1",
    "unspecified 6": "::",
    "IPv4-compatible": "::7f00:1",
    "mapped loopback": "::ffff:127.0.0.1",
    "mapped private": "::ffff:a00:1",
    "mapped metadata": "::ffff:169.254.169.254",
    "translated": "::ffff:0:10.0.0.1",
    "NAT64 of private": "64:ff9b::10.0.0.1",
    "NAT64 of metadata": "64:ff9b::a9fe:a9fe",
    "local NAT64": "64:ff9b:1::8.8.8.8",
    "discard": "100::1",
    "Teredo": "2001:0:102:304::1",
    "ORCHID": "2001:20::1",
    "documentation 6": "2001:db8::1",
    "6to4 of private": "2002:a00:1::1",
    "6to4 of public": "2002:808:808::1",
    "other documentation 6": "3fff::1",
    "segment routing": "5f00::1",
    "unique local": "fd00::1",
    "metadata of the cloud 6": "fd00:ec2::254",
    "link-local 6": "fe80::1",
    "link-local 6 on an interface": "fe80::1%eth0",
    "site-local": "fec0::1",
    "multicast 6": "ff02::1",
    "global on an interface": "2606:4700::1111%eth0",
    "no address": "yaninda.example",
    "nothing": "",
}
PUBLIC = [
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "169.253.255.255",
    "192.167.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2001:4860:4860::8888",
    "2a00:1450:4017:80f::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
]


@pytest.mark.parametrize("address", list(PRIVATE.values()), ids=list(PRIVATE))
def test_private_addresses_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


def test_one_private_address_is_enough_to_refuse() -> None:
    require_public(["8.8.8.8", "2606:4700:4700::1111"])
    with pytest.raises(PrivateAddress):
        require_public(["8.8.8.8", "10.0.0.1"])


@pytest.mark.parametrize("spelling", ["2130706433", "0x7f000001", "0x7f.1", "017700000001", "127.1", "0"])
def test_unusual_notations_of_ipv4_are_recognised(spelling: str) -> None:
    """The resolver of the system reads them without a name server."""
    with pytest.raises(PrivateAddress):
        require_public(look_up(spelling))


def test_unknown_host_name_is_an_error() -> None:
    def unknown(_host: str) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(OSError, match="not known"):
        Resolver(unknown).addresses("nowhere.invalid", 1)


def test_invalid_host_name_is_an_error() -> None:
    with pytest.raises(OSError):
        Resolver().addresses("a" * 64 + ".example", 1)


def test_silent_name_server_ends_in_time() -> None:
    answered = threading.Event()

    def hang(_host: str) -> list[str]:
        answered.wait(10)
        return ["8.8.8.8"]

    with pytest.raises(TimeoutError):
        Resolver(hang).addresses("slow.example", 0.05)
    answered.set()


def test_silent_name_server_occupies_a_limited_number_of_threads() -> None:
    answered, looked_up = threading.Event(), []

    def hang(host: str) -> list[str]:
        looked_up.append(host)
        answered.wait(10)
        return ["8.8.8.8"]

    resolver = Resolver(hang, most_at_once=3)
    for _ in range(10):
        with pytest.raises(TimeoutError):
            resolver.addresses("slow.example", 0.01)
    assert len(looked_up) == 3
    answered.set()
