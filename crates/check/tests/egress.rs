//! Where programs may send packets.

use millrace_assemble::assemble;
use millrace_check::egress::egress;

/// Of packets of ports 0 and 1.
fn of(text: &str) -> [Option<u64>; 2] {
    let found = egress(&assemble(text), 0, 2);
    [found[0], found[1]]
}

#[test]
fn the_ingress_port_is_a_constant() {
    // FORWARD(peer(p)), kept on the stack over a call.
    let peer = "handlers
        r6 = r1
        r2 = *(u32 *)(r6 + 12)
        r2 ^= 1
        *(u64 *)(r10 - 8) = r2
        call ktime_get_ns
        r0 = *(u64 *)(r10 - 8)
        r0 |= 0x1000000
        exit";
    assert_eq!(of(peer), [Some(0b10), Some(0b01)]);
    // What is written over it is not known.
    let over = peer.replace("call ktime", "*(u8 *)(r10 - 3) = 1\n call ktime");
    assert_eq!(of(&over), [None, None]);
    let beside = peer.replace("call ktime", "*(u8 *)(r10 - 9) = 1\n call ktime");
    assert_eq!(of(&beside), [Some(0b10), Some(0b01)]);
    // Flooding leaves out the ingress port.
    assert_eq!(
        of("handlers\n r0 = 0x2000000\n exit"),
        [Some(!0b01), Some(!0b10)]
    );
}

#[test]
fn branches_on_the_port_go_one_way() {
    let text = "
        r1 = *(u32 *)(r1 + 12)
        if r1 == 1 goto first
        r0 = 3
        exit
        first:
        call ktime_get_ns
        if r0 > 5 goto drop
        r1 = 4
        r2 = 0
        call redirect
        exit
        drop:
        r0 = 1
        exit";
    assert_eq!(of(text), [Some(0b1000), Some(0b10)]);
    // A flag that is no constant keeps what was named before, which is nothing.
    let flags = text.replace("r2 = 0", "r2 = r0");
    assert_eq!(of(&flags), [Some(0b1000), Some(0b10)]);
    // XDP_REDIRECT of a program that names no target at all leads nowhere.
    assert_eq!(of("r0 = 4\n exit"), [Some(0), Some(0)]);
    let of_map =
        "call get_prandom_u32\n r6 = 4\n if r0 == 7 goto on\n r6 = 3\n on:\n r0 = r6\n exit";
    assert_eq!(of(of_map), [Some(0b01), Some(0b10)]);
}

#[test]
fn what_is_not_known_may_be_any_port() {
    let any = [None, None];
    assert_eq!(of("call get_prandom_u32\n exit"), any);
    assert_eq!(
        of("object a prog_array key=4 value=4 capacity=1
            r2 = object a
            r3 = 0
            call tail_call
            r0 = 1
            exit"),
        any
    );
    assert_eq!(
        of("object a devmap key=4 value=4 capacity=1
            r1 = object a
            r2 = 0
            r3 = 0
            call redirect_map
            exit"),
        any
    );
    // A function of its own is not followed.
    assert_eq!(of("call fn other\n exit\n fn other\n r0 = 1\n exit"), any);
    // More verdicts than a set holds.
    let mut many = String::from("call get_prandom_u32\n r1 = r0\n r0 = 0\n");
    for n in 0..40 {
        many += &format!("if r1 == {n} goto end\n r0 = {n}\n");
    }
    assert_eq!(of(&(many + "end:\n exit")), any);
}

#[test]
fn loops_end() {
    let text = "handlers
        r2 = 0
        again:
        r2 += 1
        if r2 < 1000 goto again
        r0 = 0
        exit";
    assert_eq!(of(text), [Some(0), Some(0)]);
}

/// As clang ends a function that drops early: both meet at one exit.
#[test]
fn packets_that_are_dropped_lead_nowhere() {
    let text = "r0 = 1
        r3 = *(u32 *)(r1 + 4)
        r2 = *(u32 *)(r1 + 0)
        r2 += 34
        if r2 > r3 goto out
        r2 = *(u32 *)(r1 + 12)
        r1 = 2
        if r2 == 1 goto other
        r1 = 1
        other:
        r2 = 0
        call redirect
        out:
        exit";
    assert_eq!(of(text), [Some(0b10), Some(0b01)]);
    // One that is named by something unknown leads anywhere all the same.
    let unknown = text.replace("r1 = 1", "r1 = r2\n r1 += r3");
    assert_eq!(of(&unknown)[1], None);
}

#[test]
fn a_local_function_names_a_target_only_by_a_call() {
    let text = "
        r6 = r1
        call fn count
        r1 = *(u32 *)(r6 + 12)
        r1 ^= 3
        r2 = 0
        call redirect
        r6 = r0
        call fn count
        r0 = r6
        exit
        fn count
        call ktime_get_ns
        r0 = 0
        exit";
    assert_eq!(of(text), [Some(0b10), Some(0b01)]);
    let names = text.replace("call ktime_get_ns", "r1 = 1\n r2 = 0\n call redirect");
    assert_eq!(of(&names), [None, None]);
}
