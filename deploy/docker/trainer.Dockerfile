# Builds the trainer's image with Docker, with the same files as deploy/docker/build.sh.
#
#   docker build -f deploy/docker/trainer.Dockerfile -t registry.invalid/tfjob/trainer .
FROM debian:bookworm AS build
WORKDIR /src
COPY . .
RUN bash -c 'source deploy/dev/lib.sh && install_packages' && deploy/docker/build.sh --tree /image trainer

FROM scratch
COPY --from=build /image/ /
USER 65532:65532
ENTRYPOINT ["/usr/bin/tfjob-trainer"]
