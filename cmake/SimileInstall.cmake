# What `cmake --install build --component NAME` puts under the prefix. `make deb` and `make wheel` install by it.
#   program        bin/simile, the server and its clients
#   plugin         lib/simile, the GPU plug-in, where it was built
#   documentation  manual page, completion, licence
#   service        lib/systemd/system and etc/simile, for the prefix /
#   development    share/simile/proto, the wire contract
set(share ${PROJECT_BINARY_DIR}/share)
set(texts man/man1/simile.1 bash-completion/completions/simile zsh/vendor-completions/_simile fish/vendor_completions.d/simile.fish)
set(commands "man" "completion bash" "completion zsh" "completion fish")
set(outputs "")
foreach(text command IN ZIP_LISTS texts commands)
  cmake_path(GET text PARENT_PATH folder)
  file(MAKE_DIRECTORY ${share}/${folder})
  add_custom_command(OUTPUT ${share}/${text} DEPENDS simile VERBATIM COMMAND sh -c "$<TARGET_FILE:simile> ${command} > ${share}/${text}")
  list(APPEND outputs ${share}/${text})
  install(FILES ${share}/${text} DESTINATION share/${folder} COMPONENT documentation)
endforeach()
add_custom_target(documentation DEPENDS ${outputs})

install(TARGETS simile RUNTIME DESTINATION bin COMPONENT program)
if(SIMILE_BUILD_CUDA)
  install(TARGETS simile_cuda LIBRARY DESTINATION lib/simile COMPONENT plugin)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE DESTINATION share/doc/simile COMPONENT documentation)
install(FILES ${PROJECT_SOURCE_DIR}/deploy/systemd/simile.service DESTINATION lib/systemd/system COMPONENT service)
install(FILES ${PROJECT_SOURCE_DIR}/deploy/systemd/simile.json DESTINATION etc/simile COMPONENT service)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/proto/ DESTINATION share/simile/proto COMPONENT development FILES_MATCHING PATTERN *.proto)
