# cured in a container: the daemon and the client, on a bare Debian, as a user of its own. Nothing in it needs to be
# written to but the socket's folder, so it runs with a read-only root.
#
#   CPU only:   docker build -t cured .
#   with CUDA:  docker build -t cured --build-arg TOOLKIT=nvidia/cuda:13.0.0-devel-ubuntu22.04 .
#
# --build-arg REVISION="$(git rev-parse HEAD)" puts the commit into the image's labels.
# TOOLKIT is any image with a CUDA toolkit in /usr/local/cuda; only that folder is taken from it. BASE is Debian 12 or newer.
ARG BASE=debian:12-slim
ARG TOOLKIT=${BASE}

FROM ${TOOLKIT} AS toolkit
RUN mkdir -p /usr/local/cuda

FROM ${BASE} AS build
COPY --from=toolkit /usr/local/cuda /usr/local/cuda
ENV PATH=/usr/local/cuda/bin:${PATH}
WORKDIR /src
# First what changes seldom, so that an edit of the source does not install everything again.
COPY scripts/common.sh scripts/bootstrap scripts/
RUN scripts/bootstrap
COPY . .
RUN scripts/bundle --programs-only /opt/cured

# A client that shares its memory with the daemon (deploy/compose.yml): --target example.
FROM build AS build-example
RUN cc -O2 examples/shared_array.c -Iclient/include -Lbuild/bundle/lib -l:libcured.a -lm -ldl -o /opt/shared_array

FROM ${BASE} AS example
COPY --from=build-example /opt/shared_array /usr/local/bin/shared_array
ENV CURED_CONNECT=unix:/run/cured/cured.sock
ENTRYPOINT ["shared_array"]

# The image that is made when no target is named.
FROM ${BASE}
COPY --from=build /opt/cured /opt/cured
# Fixed numbers, so that a volume's owner can be told from outside.
RUN echo 'cured:x:10001:10001::/nonexistent:/usr/sbin/nologin' >>/etc/passwd \
    && echo 'cured:x:10001:' >>/etc/group \
    && mkdir -p /run/cured && chown 10001:10001 /run/cured
ENV PATH=/opt/cured/bin:/usr/local/bin:/usr/bin:/bin \
    CURED_LISTEN=unix:/run/cured/cured.sock \
    CURED_ADMIN=unix:/run/cured/admin.sock \
    CURED_CONNECT=unix:/run/cured/cured.sock \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
ARG VERSION=0.2.0
ARG REVISION=
LABEL org.opencontainers.image.title="cured" \
    org.opencontainers.image.description="CUda REDuction daemon: exact reductions of arrays" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.vendor="the cured authors"
USER 10001:10001
VOLUME /run/cured
STOPSIGNAL SIGTERM
# As in deploy/compose.yml.
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s --retries=3 CMD ["cured-client", "ping"]
ENTRYPOINT ["cured"]
