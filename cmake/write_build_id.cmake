# cmake -DINPUTS=list.txt -DOUTPUT=x.cpp -P write_build_id.cmake: a constant that differs whenever code made of a kernel may. The list
# has a line about the compiler, then a file per line. Equal sources compiled alike give the same constant, whatever program they
# are linked into.
file(STRINGS "${INPUTS}" files)
list(POP_FRONT files hashes)
foreach(file IN LISTS files)
  file(SHA256 "${file}" hash)
  string(APPEND hashes " ${hash}")
endforeach()
string(SHA256 id "${hashes}")
file(WRITE "${OUTPUT}" "namespace burin::codegen {\nextern const char* const build_id;\nconst char* const build_id = \"${id}\";\n}  // namespace burin::codegen\n")
