"""Which addresses the service calls: those that anybody could, never its own network's."""

import ipaddress

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_PRIVATE_TOO = (ipaddress.ip_network("64:ff9b:1::/48"), ipaddress.ip_network("fec0::/10"))  # not to every Python
_EMBEDDING = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))  # NAT64, IPv4-compatible


def is_public(address: str) -> bool:
    """Whether a numeric address lies on the public internet: not private, loopback, link-local, shared, reserved or
    multicast, and not one of those dressed up as IPv6."""
    found = _undressed(ipaddress.ip_address(address.partition("%")[0]))
    return found.is_global and not found.is_multicast and not any(found in network for network in _PRIVATE_TOO)


def names_private(host: str) -> bool:
    """Whether it can be seen from `host` alone that it is not public. Other names are judged when they are called."""
    bare = host.strip("[]").rstrip(".").lower()
    if bare == "localhost" or bare.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return not is_public(bare)
    except ValueError:
        return False


def _undressed(address: _Address) -> _Address:
    """The IPv4 address inside one of IPv6 that leads to it."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and any(address in network for network in _EMBEDDING):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return inner or address
    return address
