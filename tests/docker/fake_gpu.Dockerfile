# Fakes for docker_test.py. Its context is tests/.
#   stage driver    a driver's two libraries, without a system
#   the last stage  the GPU image's environment with a driver and a plug-in that are fakes
#   BUILD  an image of the stage `build` of docker/Dockerfile
#   GPU    an image of its stage `gpu-environment`
ARG BUILD
ARG GPU
FROM ${BUILD} AS fakes
COPY . tests
RUN cmake --preset release -D SIMILE_TESTS=ON && cmake --build --preset release --target fake_working fake_cuda_driver fake_nvml

FROM scratch AS driver
COPY --from=fakes /src/build/tests/fakes/libfake_cuda_driver.so /src/build/tests/fakes/libfake_nvml.so /

FROM ${GPU}
COPY --from=fakes /src/build/tests/fakes/libfake_working.so /usr/local/bin/libsimile_cuda.so
COPY --from=fakes /src/build/tests/fakes/libfake_cuda_driver.so /usr/lib/libcuda.so.1
# The first search is the check of a new collection; the second, the first query, loses the GPU.
ENV FAKE_GPU_SEARCHES=ok,lost
