"""Which addresses the service calls: public ones, never those of its own network."""

import ipaddress

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# IANA's special-purpose registries, as far as what they hold is not for everybody to call. The lists of `ipaddress`
# change with the releases of Python, and lack some of these in each so far.
_PRIVATE_V4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",  # multicast, reserved, broadcast
        ),
    )
)
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
"""All addresses of IPv6 that were ever given out for public use. Loopback, link-local, unique local, site-local,
multicast, segment routing's 5f00::/16, discard-only 100::/64 and local NAT64 64:ff9b:1::/48 lie outside."""
_PRIVATE_V6 = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocols, Teredo and ORCHID among them
            "2001:db8::/32",
            "3ffe::/16",  # the 6bone, given back
            "3fff::/20",
        ),
    )
)
_EMBEDDING = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "::/96",  # IPv4-compatible
            "::ffff:0:0/96",  # IPv4-mapped
            "::ffff:0:0:0/96",  # IPv4-translated
            "64:ff9b::/96",  # NAT64
        ),
    )
)
_ISATAP = (0x00005EFE, 0x02005EFE)


def is_public(address: str) -> bool:
    """Whether a numeric address lies on the public internet: not private, loopback, link-local, shared, reserved,
    documentation's or multicast, and not one of those dressed up as IPv6. Raises ValueError for what is no address."""
    ip = _undressed(ipaddress.ip_address(address.partition("%")[0]))
    if isinstance(ip, ipaddress.IPv4Address):
        return ip.is_global and not any(ip in network for network in _PRIVATE_V4)
    return ip in _GLOBAL_V6 and ip.is_global and not any(ip in network for network in _PRIVATE_V6)


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
    if isinstance(address, ipaddress.IPv4Address):
        return address
    low = int(address) & 0xFFFFFFFF
    if any(address in network for network in _EMBEDDING) or (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return ipaddress.IPv4Address(low)
    return address.sixtofour or address
