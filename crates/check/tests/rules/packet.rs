//! Rules about the bytes of a packet.

use super::{accepts, packet, refuses};

#[test]
fn packet_bounds_are_exact_in_every_form_of_the_comparison() {
    // (condition with r3 = data + 14, what the fall-through way proves)
    let forms = [
        ("if r3 > r2 goto out", 14),
        ("if r3 >= r2 goto out", 15),
        ("if r2 < r3 goto out", 14),
        ("if r2 <= r3 goto out", 15),
    ];
    for (form, proven) in forms {
        let with = |last: i32| {
            packet(&format!(
                "r3 = r1\nr3 += 14\n{form}\nr4 = *(u8 *)(r1 + {last})"
            ))
        };
        accepts(&with(proven - 1));
        refuses("packet-bounds", &with(proven));
    }
    let taken = [("<", 15), ("<=", 14)];
    for (op, proven) in taken {
        let with = |last: i32| {
            packet(&format!(
                "r3 = r1\nr3 += 14\nif r3 {op} r2 goto in\ngoto out\nin:\nr4 = *(u8 *)(r1 + {last})"
            ))
        };
        accepts(&with(proven - 1));
        refuses("packet-bounds", &with(proven));
    }
}

#[test]
fn variable_offsets_into_the_packet() {
    let with = |mask: &str, last: i32| {
        packet(&format!(
            "r3 = r1\nr3 += 14\nif r3 > r2 goto out\nr4 = *(u8 *)(r1 + 0)\n{mask}\nr1 += r4\nr5 = r1\nr5 += 20\nif r5 > r2 goto out\nr0 = *(u32 *)(r1 + {last})"
        ))
    };
    accepts(&with("r4 &= 60", 16));
    refuses("packet-bounds", &with("r4 &= 60", 17));
    accepts(&with("r4 <<= 6", 16));
    accepts(&with("r4 <<= 9", 16));
    refuses("pointer-reach", &with("r4 <<= 22", 16));
    refuses(
        "pointer-reach",
        &packet("r4 = *(u32 *)(r6 + 12)\nr4 <<= 32\nr1 += r4"),
    );
    // A bounded index into what has been proved already needs no comparison of its own.
    let table = |mask: i32| {
        packet(&format!(
            "r3 = r1\nr3 += 16\nif r3 > r2 goto out\nr4 = *(u8 *)(r1 + 0)\nr4 &= {mask}\nr1 += r4\nr0 = *(u8 *)(r1 + 0)"
        ))
    };
    accepts(&table(15));
    refuses("packet-bounds", &table(31));
}

#[test]
fn what_is_there_after_one_pointer_is_there_before_it() {
    // r5 is somewhere in the first 60 bytes and at most the end; r3 + 4 is at most r5.
    let with = |last: i32| {
        packet(&format!(
            "r4 = *(u32 *)(r6 + 12)\nr4 &= 60\nr5 = r1\nr5 += r4\nif r5 > r2 goto out\nr4 = *(u32 *)(r6 + 16)\nr4 &= 60\nr3 = r1\nr3 += r4\nr4 = r3\nr4 += 4\nif r4 > r5 goto out\nr0 = *(u8 *)(r3 + {last})"
        ))
    };
    accepts(&with(3));
    refuses("packet-bounds", &with(4));
}

#[test]
fn metadata_ends_at_the_packet() {
    let with = |n: i32| {
        packet(&format!(
            "r3 = *(u32 *)(r6 + 8)\nr4 = r3\nr4 += 4\nif r4 > r1 goto out\nr0 = *(u32 *)(r3 + {n})"
        ))
    };
    accepts(&with(0));
    refuses("packet-bounds", &with(1));
}

#[test]
fn packet_bytes_with_a_sign_are_bounded_by_their_width() {
    let with = |least: i32| {
        packet(&format!(
            "r3 = r1\nr3 += 14\nif r3 > r2 goto out\nr4 = *(s8 *)(r1 + 0)\nif r4 s< {least} goto out\n\
             r5 = r1\nr5 += 14\nr5 += r4\nr3 = r5\nr3 += 4\nif r3 > r2 goto out\nr0 = *(u32 *)(r5 + 0)"
        ))
    };
    accepts(&with(0));
    accepts(&with(-14));
    refuses("packet-bounds", &with(-15));
}

#[test]
fn a_moved_packet() {
    let with = |reload: &str| {
        packet(&format!(
            "r3 = r1\nr3 += 14\nif r3 > r2 goto out\nr7 = r1\nr1 = r6\nr2 = 0\ncall xdp_adjust_tail\n{reload}r0 = *(u8 *)(r7 + 0)"
        ))
    };
    refuses("stale-packet-pointer", &with(""));
    refuses("packet-bounds", &with("r7 = *(u32 *)(r6 + 0)\n"));
    accepts(&with(
        "r7 = *(u32 *)(r6 + 0)\nr2 = *(u32 *)(r6 + 4)\nr3 = r7\nr3 += 1\nif r3 > r2 goto out\n",
    ));
}

#[test]
fn how_long_a_packet_was_that_has_moved() {
    // r7 = data and r8 = data_end of before the calls.
    let with = |calls: usize, body: &str| {
        let call = "r1 = r6\nr2 = 0\ncall xdp_adjust_tail\n".repeat(calls);
        packet(&format!("r7 = r1\nr8 = r2\n{call}{body}"))
    };
    accepts(&with(1, "r8 -= r7"));
    accepts(&with(
        1,
        "*(u64 *)(r10 - 8) = r8\nr3 = *(u64 *)(r10 - 8)\nr3 += 4\nr3 -= r7",
    ));
    accepts(&with(1, "w8 -= w7"));
    accepts(&with(1, "w3 = w8\nw3 -= w7"));
    // Nothing is known of it but that it is a number.
    refuses(
        "stack-bounds",
        &with(
            1,
            "r8 -= r7\nr8 &= 511\nr3 = r10\nr3 -= 500\nr3 += r8\n*(u8 *)(r3 + 0) = 1",
        ),
    );
    for body in [
        "r3 = *(u8 *)(r7 + 0)",
        "*(u8 *)(r7 + 0) = 1",
        "r3 = r7\nr3 += 14\nif r3 > r8 goto out",
        "if r7 == r8 goto out",
        // One of them is of the packet as it is now.
        "r3 = *(u32 *)(r6 + 4)\nr3 -= r7",
        "r3 = *(u32 *)(r6 + 4)\nif r7 > r3 goto out",
    ] {
        refuses("stale-packet-pointer", &with(1, body));
    }
    // Which of two moves they are of before is forgotten.
    refuses("stale-packet-pointer", &with(2, "r8 -= r7"));
}

#[test]
fn the_length_of_the_packet() {
    // 32-bit copies of the ends, as compilers write `(__u32)(data_end - data)`.
    accepts(&packet("w4 = w2\nw4 -= w1\nr0 = r4"));
    refuses("pointer-arithmetic", &packet("w4 = w2\nr4 &= 7"));
    // data_end - data is at most 65535.
    accepts(&format!(
        "object t global value=65536\n{}",
        packet("r2 -= r1\nr4 = value t\nr4 += r2\nr0 = *(u8 *)(r4 + 0)")
    ));
    refuses(
        "value-bounds",
        &format!(
            "object t global value=65535\n{}",
            packet("r2 -= r1\nr4 = value t\nr4 += r2\nr0 = *(u8 *)(r4 + 0)")
        ),
    );
}

/// Fields of 32 bits hold the addresses of a packet, so 32 bits of a pointer into it are all of it.
#[test]
fn addresses_of_a_packet_have_32_bits() {
    let after = |check: &str, then: &str| packet(&format!("{check}\nif r3 > r2 goto out\n{then}"));
    let four = |then: &str| after("r3 = r1\nr3 += 4", then);
    // A copy, and one that was kept in 4 bytes.
    accepts(&four("w4 = w1\nr0 = *(u32 *)(r4 + 0)"));
    accepts(&four(
        "*(u32 *)(r10 - 4) = r1\nr4 = *(u32 *)(r10 - 4)\nr0 = *(u32 *)(r4 + 0)",
    ));
    // Sums, as signed numbers of 32 bits, and comparisons.
    accepts(&four("w4 = w1\nw4 += 4\nw4 += -3\nr0 = *(u8 *)(r4 + 0)"));
    accepts(&packet(
        "w4 = w1\nw4 += 4\nif w4 > w2 goto out\nr0 = *(u32 *)(r1 + 0)",
    ));
    refuses("packet-bounds", &four("w4 = w1\nr0 = *(u32 *)(r4 + 1)"));
    refuses(
        "packet-bounds",
        &packet("w4 = w1\nw4 += 4\nif w4 > w2 goto out\nr0 = *(u8 *)(r1 + 4)"),
    );
    refuses(
        "pointer-reach",
        &four("r5 = *(u32 *)(r1 + 0)\nw4 = w1\nw4 += w5\nr0 = 0"),
    );
    refuses(
        "pointer-comparison",
        &packet("if w1 s> w2 goto out\nr0 = 0"),
    );
    // Neither in parts nor with a sign, and no number.
    for load in [
        "r4 = *(u16 *)(r10 - 4)",
        "r4 = *(s32 *)(r10 - 4)",
        "r4 = *(u32 *)(r10 - 6)",
        "r4 = *(u64 *)(r10 - 8)",
    ] {
        refuses(
            "partial-pointer",
            &four(&format!(
                "r5 = 0\n*(u64 *)(r10 - 8) = r5\n*(u32 *)(r10 - 4) = r1\n{load}\nr0 = 0"
            )),
        );
    }
    // Other memory has addresses of more bits.
    refuses(
        "not-a-pointer",
        "r4 = r10\nw4 = w4\nr0 = *(u8 *)(r4 - 8)\nexit",
    );
    refuses("pointer-leak", "*(u32 *)(r10 - 4) = r10\nr0 = 0\nexit");
    // What the code does to a pointer it cannot do to a number that has more bits.
    let either = |number: &str| {
        packet(&format!(
            "r5 = *(u32 *)(r6 + 12)\n{number}\nr4 = r1\nif w5 == 0 goto on\nr4 = r5\non:\nw4 = w4\nr0 = 0"
        ))
    };
    accepts(&either("r5 &= 255"));
    refuses("pointer-arithmetic", &either("r5 <<= 8"));
}
