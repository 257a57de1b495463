"""The images built by the Dockerfile's own lines and started as docker-compose.yml says, without Docker and without a
registry.

`python -m tests.support.images` as root, or `make try-images`. buildah builds (`--isolation chroot`) on a base of
debootstrap's, which stands in for the named base images. Each service then runs in a chroot of its image, with
namespaces of its own.
"""
