//! Programs that may change the packets that they get.

use millrace_assemble::assemble;
use millrace_check::alters::alters;
use millrace_check::{Options, check};

/// The instruction that may.
fn of(text: &str) -> Option<usize> {
    let program = assemble(text);
    let checked = check(&program, &Options::default()).unwrap();
    alters(&checked, &program).map(|step| step.pc)
}

/// After this `r7` points to at least 14 bytes of the packet, and `r6` is the context.
const BOUNDS: &str = "r6 = r1
    r7 = *(u32 *)(r6 + 0)
    r2 = *(u32 *)(r6 + 4)
    r3 = r7
    r3 += 14
    if r3 > r2 goto out\n";
const OUT: &str = "\nout:\n r0 = 2\n exit";

#[test]
fn stores_into_the_packet_alter_it_and_others_do_not() {
    let body = |text: &str| of(&format!("{BOUNDS}{text}{OUT}"));
    assert_eq!(body("r0 = *(u8 *)(r7 + 3)\n *(u64 *)(r10 - 8) = r0"), None);
    assert_eq!(body("*(u64 *)(r10 - 8) = 1\n *(u8 *)(r7 + 3) = 1"), Some(7));
    // An address that is the packet's in some executions.
    let either = "r0 = *(u8 *)(r7 + 0)
        r8 = r10
        r8 += -14
        if r0 > 5 goto stack
        r8 = r7
        stack:
        *(u8 *)(r8 + 1) = 1";
    assert_eq!(body(either), Some(11));
    // What never runs alters nothing.
    assert_eq!(
        body("r0 = 0\n if r0 == 0 goto out\n *(u8 *)(r7 + 3) = 1"),
        None
    );
}

#[test]
fn calls_that_move_or_fill_the_packet_alter_it() {
    let body = |text: &str| of(&format!("{BOUNDS}{text}{OUT}"));
    assert_eq!(body("r1 = r6\n r2 = 0\n call xdp_adjust_head"), Some(8));
    let load = |to: &str| {
        format!("r1 = r6\n r2 = 0\n r3 = {to}\n r3 += -8\n r4 = 4\n call xdp_load_bytes")
    };
    assert_eq!(body(&load("r10")), None);
    let into = load("r7").replace("r3 += -8", "r3 += 8");
    assert_eq!(body(&into), Some(11));
    assert_eq!(body("call ktime_get_ns"), None);
}
