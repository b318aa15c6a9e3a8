# The GPU image's environment with a driver and a plug-in that are fakes, for docker_test.py. Its context is tests/.
#   BUILD  an image of the stage `build` of docker/Dockerfile
#   GPU    an image of its stage `gpu-environment`
ARG BUILD
ARG GPU
FROM ${BUILD} AS fakes
COPY . tests
RUN cmake --preset release -D SIMILE_TESTS=ON && cmake --build --preset release --target fake_working fake_cuda_driver

FROM ${GPU}
COPY --from=fakes /src/build/tests/fakes/libfake_working.so /usr/local/bin/libsimile_cuda.so
COPY --from=fakes /src/build/tests/fakes/libfake_cuda_driver.so /usr/lib/libcuda.so.1
# The first search is the check of a new collection; the second, the first query, loses the GPU.
ENV FAKE_GPU_SEARCHES=ok,lost
