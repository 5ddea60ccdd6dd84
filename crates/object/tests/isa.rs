//! The whole instruction set, assembled by LLVM and read back.

use crate::common;

use millrace_object::load;
use millrace_object::program::FunctionId;

#[test]
fn every_instruction_reads_as_it_was_written() {
    let path = common::program("isa.s");
    let Some(bytes) = common::compile("clang-19", &path, &["-Wno-unused-command-line-argument"])
    else {
        return;
    };
    let program = load(&bytes, "isa").unwrap_or_else(|e| panic!("{e}"));
    let source = std::fs::read_to_string(&path).unwrap();
    let lines = source
        .lines()
        .filter(|l| l.starts_with('\t') && l.contains("//"));
    let expected: Vec<_> = lines
        .map(|l| l.split_once("//").unwrap().1.trim())
        .collect();
    let mut read = Vec::new();
    for (id, function) in program.functions.iter().enumerate() {
        for pc in 0..function.insns.len() {
            read.push(program.text(FunctionId(id), pc));
        }
    }
    assert_eq!(read, expected);
}
