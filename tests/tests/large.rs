//! A program of 48,000 instructions, the size of the largest public one, is checked, and one of an eighth is emitted and
//! compiled as well, within an object's budget. `MILLRACE_LARGE=1470` does all of it with the larger one, and prints what
//! each stage takes: the figures of docs/measurements/public-objects.md.

use std::time::Instant;

use millrace_check::{Options, check};
use millrace_emit::cache::Cache;
use millrace_tests::large::source;
use millrace_turns::its_turn;

/// Rules of the large program.
const RULES: u32 = 1470;

#[test]
fn the_largest_program_is_checked_and_one_of_an_eighth_is_built() {
    if !its_turn("the largest program", 0, 3) {
        return;
    }
    let rules = std::env::var("MILLRACE_LARGE").map_or(RULES / 8, |n| n.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large.c");
    std::fs::write(&file, source(rules)).unwrap();
    let cache = Cache::at(&folder.path().join("cache")).unwrap();
    let begin = Instant::now();
    let options = millrace_emit::Options::default();
    let built = millrace_emit::build(&cache, &file, &[], &options, &mut |stage| {
        println!("{:.2?} {stage:?}", begin.elapsed());
    });
    built.unwrap();
    println!("{:.2?} built", begin.elapsed());

    std::fs::write(&file, source(RULES)).unwrap();
    let object = folder.path().join("large.o");
    let toolchain = millrace_emit::toolchain::find(&cache).unwrap();
    let include = cache.headers().unwrap().join("include");
    millrace_emit::toolchain::compile_nf(&toolchain, &file, &include, &object).unwrap();
    let program = millrace_object::load_file(&object).unwrap();
    let instructions: usize = program.functions.iter().map(|f| f.insns.len()).sum();
    assert!((45_000..55_000).contains(&instructions), "{instructions}");
    let begin = Instant::now();
    check(&program, &Options::default()).unwrap();
    println!("{instructions} instructions: check {:.2?}", begin.elapsed());
}
