import pytest

from warpfold.kernels.places.addresses import is_public, names_private


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "1.1.1.1",
        "192.0.1.1",
        "192.88.98.255",
        "192.88.100.1",
        "2606:4700::1111",
        "2a00:1450:4001::1",
        "3ffd::1",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2002:808:808::1",
    ],
)
def test_what_anybody_can_call_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",  # noqa: S104 (an address, not a binding)
        "10.1.2.3",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "192.168.1.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fc00::1",
        "fe80::1",
        "fe80::1%eth0",
        "ff02::1",
        "::ffff:10.0.0.1",
        "2002:7f00:1::",
        "64:ff9b::7f00:1",
        "64:ff9b:1::7f00:1",
        "::127.0.0.1",
        "::10.0.0.1",
        "fec0::1",
        "192.0.0.1",
        "192.0.0.9",
        "192.0.0.170",
        "192.88.99.1",
        "192.0.2.1",
        "240.0.0.1",
        "3fff::1",
        "3fff:fff:ffff::1",
        "5f00::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "3ffe::1",
        "4000::1",
        "::ffff:192.0.0.8",
        "::ffff:192.88.99.1",
        "::ffff:0:127.0.0.1",
        "::ffff:0:10.0.0.1",
        "64:ff9b::192.88.99.1",
        "64:ff9b::c000:1",
        "2002:c058:6301::1",
        "2002:c000:1::",
        "2606:4700:0:1:0:5efe:10.0.0.1",
        "2606:4700:0:1:200:5efe:127.0.0.1",
    ],
)
def test_private_addresses_are_not_however_they_are_dressed(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "printer.local", "127.0.0.1", "[::1]"])
def test_some_names_are_seen_to_be_private(host: str) -> None:
    assert names_private(host)


@pytest.mark.parametrize("host", ["example.org", "8.8.8.8", "localhost.example.org"])
def test_others_are_judged_when_they_are_called(host: str) -> None:
    assert not names_private(host)
