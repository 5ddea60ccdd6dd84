//! Loops that are proved to end, and the facts inside them.

use millrace_assemble::assemble;
use millrace_check::{Options, Statistics, check, check_with_statistics};

#[track_caller]
fn accepts(text: &str) -> Statistics {
    let (result, statistics) = check_with_statistics(&assemble(text), &Options::default());
    if let Err(r) = result {
        panic!("refused: {r:#?}");
    }
    statistics
}

#[track_caller]
fn refuses(rule: &str, text: &str) {
    // A smaller budget, so that what is followed round by round is given up soon.
    let options = Options {
        max_visits: 50_000,
        ..Options::default()
    };
    match check_with_statistics(&assemble(text), &options).0 {
        Ok(_) => panic!("accepted"),
        Err(r) => assert_eq!(r[0].rule, rule, "{r:#?}"),
    }
}

#[test]
fn a_long_counted_loop_is_one_round() {
    let s = accepts("r2 = 0\nr0 = 0\nagain:\nr0 += r2\nr2 += 1\nif r2 < 65537 goto again\nexit");
    assert!(s.visits < 100, "{s:?}");
    let s = accepts("w2 = 0\nr0 = 0\nagain:\nr0 += r2\nw2 += 4\nif w2 != 40000 goto again\nexit");
    assert!(s.visits < 200, "{s:?}");
}

#[test]
fn counting_down() {
    accepts("r2 = 1000\nr0 = 0\nagain:\nr0 += r2\nr2 += -1\nif r2 != 0 goto again\nexit");
    // The test sees the counter before it is decremented, and it wraps at 32 bits in the last round.
    accepts(
        "w2 = 8\nr0 = 0\nagain:\nw3 = w2\nw3 += -1\nr0 += 1\nif w2 == 0 goto out\nw2 = w3\ngoto again\nout:\nexit",
    );
}

#[test]
fn counting_without_32_bit_arithmetic() {
    let s = accepts(
        "r2 = 0\nr0 = 0\nagain:\nr0 += 1\nr2 += 1\nr3 = r2\nr3 <<= 32\nr3 >>= 32\nif r3 != 50000 goto again\nexit",
    );
    assert!(s.visits < 500, "{s:?}");
}

#[test]
fn three_nested_loops() {
    let s = accepts(
        "r6 = *(u32 *)(r1 + 12)\nr0 = 0\nr2 = 0\na:\nr3 = 0\nb:\nr4 = 0\nc:\nr0 += r4\nif r0 == r6 goto out\nr4 += 1\nif r4 < 4097 goto c\nr3 += 1\nif r3 < 10 goto b\nr2 += 1\nif r2 < 4097 goto a\nout:\nr0 = 1\nexit",
    );
    assert!(s.visits < 2000, "{s:?}");
}

#[test]
fn rounds_within_rounds_are_not_too_many() {
    let with = |a: u32, b: u32| {
        format!(
            "r0 = 0\nr2 = 0\na:\nr3 = 0\nb:\nr0 += r3\nr3 += 1\nif r3 < {b} goto b\nr2 += 1\nif r2 < {a} goto a\nr0 = 1\nexit"
        )
    };
    accepts(&with(30_000, 60_000));
    refuses("too-many-rounds", &with(80_000, 80_000));
    // One after the other they add up.
    let once = "r2 = 0\nagain:\nr2 += 1\nif r2 < 8000000 goto again\n";
    let accepted = once.replace("again", "first") + once + "r0 = 0\nexit";
    accepts(&accepted);
}

#[test]
fn the_bound_may_be_a_variable() {
    let with = |bound: &str| {
        format!(
            "r3 = *(u32 *)(r1 + 12)\n{bound}\nr2 = 0\nr0 = 0\nagain:\nif r2 >= r3 goto out\nr0 += 1\nr2 += 1\ngoto again\nout:\nr0 = 1\nexit"
        )
    };
    accepts(&with("r3 &= 1023"));
    // Four thousand million rounds are no bound.
    refuses("unbounded-loop", &with("r3 += 0"));
}

#[test]
fn an_index_is_bounded_inside_and_after_the_loop() {
    let with = |bound: i32, size: i32| {
        format!(
            "object t global value={size}\nr2 = 0\nr0 = 0\nagain:\nr3 = value t\nr3 += r2\nr4 = *(u8 *)(r3 + 0)\nr0 += r4\nr2 += 1\nif r2 < {bound} goto again\nexit"
        )
    };
    let s = accepts(&with(5000, 5000));
    assert!(s.visits < 200, "{s:?}");
    refuses("value-bounds", &with(5001, 5000));
}

#[test]
fn what_only_the_unrolled_loop_shows() {
    // The loop writes all eight bytes that the end reads.
    let with = |n: i32| {
        format!(
            "r2 = r10\nr2 += -8\nr3 = 0\nagain:\n*(u8 *)(r2 + 0) = 7\nr2 += 1\nr3 += 1\nif r3 < {n} goto again\nr0 = *(u64 *)(r10 - 8)\nexit"
        )
    };
    let zeroed = |n: i32| {
        let program = assemble(&with(n));
        let checked = check(&program, &Options::default()).unwrap();
        checked.flows[0].frames[0].zeroed.clone()
    };
    assert_eq!(zeroed(8), []);
    assert_eq!(zeroed(7), [(-1, 0)]);
    refuses("stack-bounds", &with(9));
}

#[test]
fn loops_that_do_not_end() {
    refuses("unbounded-loop", "r0 = 0\nagain:\ngoto again");
    refuses("unbounded-loop", "r0 = 0\nagain:\nr0 += 1\ngoto again");
    // Every round may put the counter back.
    refuses(
        "unbounded-loop",
        "r6 = r1\nr2 = 0\nagain:\nr3 = *(u32 *)(r6 + 12)\nif r3 != 7 goto on\nr2 = 0\non:\nr2 += 1\nif r2 < 10 goto again\nr0 = 0\nexit",
    );
    refuses(
        "unbounded-loop",
        "r6 = r1\nr2 = 0\nagain:\nr3 = *(u32 *)(r6 + 12)\nif r3 != 7 goto on\nr2 += -1\non:\nr2 += 1\nif r2 < 10 goto again\nr0 = 0\nexit",
    );
    refuses(
        "unbounded-loop",
        "r6 = r1\nr2 = 5\nagain:\nr3 = *(u32 *)(r6 + 12)\nif r3 == 7 goto on\nr2 += -1\ngoto test\non:\nr2 += 1\ntest:\nif r2 < 10 goto again\nr0 = 0\nexit",
    );
    // It counts, but the inner loop never lets it.
    refuses(
        "unbounded-loop",
        "r2 = 0\na:\nr3 = 0\nb:\nr4 = *(u32 *)(r1 + 12)\nif r4 != 3 goto b\nr2 += 1\nif r2 < 10 goto a\nr0 = 0\nexit",
    );
    // The counter wraps past the bound.
    refuses(
        "unbounded-loop",
        "r2 = 0\nagain:\nr2 += 3\nif r2 != 1000 goto again\nr0 = 0\nexit",
    );
    // Two ways into the cycle, neither counts.
    refuses(
        "unbounded-loop",
        "r6 = r1\nr2 = *(u32 *)(r6 + 12)\nif r2 == 0 goto b\na:\nr2 = *(u32 *)(r6 + 12)\nb:\nr3 = *(u32 *)(r6 + 16)\nif r3 != 9 goto a\nr0 = 0\nexit",
    );
}

#[test]
fn different_steps_of_one_direction_count() {
    accepts(
        "r6 = r1\nr2 = 0\nagain:\nr3 = *(u32 *)(r6 + 12)\nif r3 != 7 goto on\nr2 += 2\non:\nr2 += 1\nif r2 < 1000 goto again\nr0 = 0\nexit",
    );
}

#[test]
fn a_loop_is_named_at_the_branch_that_goes_back() {
    let (result, _) = check_with_statistics(
        &assemble("r0 = 0\nr6 = r1\nagain:\nr2 = *(u32 *)(r6 + 12)\nif r2 != 0 goto again\nexit"),
        &Options::default(),
    );
    assert_eq!(result.unwrap_err()[0].instruction, 3);
}

#[test]
fn the_carries_of_a_checksum_are_folded() {
    // while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    let fold = |less: i32| {
        format!(
            "r1 = *(u32 *)(r1 + 12)\nif w1 < 65536 goto out\nagain:\nw2 = w1\nw2 >>= 16\nw1 &= 65535\nw1 += w2\nw1 -= {less}\nif w1 > 65535 goto again\nout:\nr0 = 2\nexit"
        )
    };
    let s = accepts(&fold(0));
    assert!(s.visits < 500, "{s:?}");
    // 0x10000 comes round as itself.
    refuses("unbounded-loop", &fold(-0xffff));
}
