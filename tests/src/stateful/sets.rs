//! Programs over packet sets: one of the grammar's, run for each packet of a set, with handlers around it.

use std::fmt::Write as _;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::case::{Case, Dialect};
use super::grammar::{Intent, chance, pick, program};
use super::traffic::{self, Traffic};

/// The sets of a program.
#[derive(Clone, Copy, Debug)]
pub struct Sets {
    /// which packets belong together
    pub key: Together,
    /// ms without a packet until a set expires
    pub expires: u32,
    /// what becomes of a set that does
    pub ending: Ending,
    /// packets of a set that are let through; 0: all
    pub most: u32,
    /// a packet with this bit of its length set ends its set
    pub closes: Option<u8>,
    /// whether a packet opens a set at one port only
    pub opens_at: Option<u8>,
}

/// Packets that belong together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Together {
    /// of one direction of a flow
    Flow,
    /// of both, named by what the first port sees
    Answers,
    /// of both, the lower end first
    Symmetric,
    /// from one source
    Source,
    /// of the end behind the first port
    Inside,
    /// of a protocol
    Protocol,
}

/// What `ON_EXPIRY` does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// there is none
    Nothing,
    /// counts how often the set ended, and the packets that it had
    Remembered,
    /// the same, and a set that ended twice is not opened again
    Barred,
    /// adds to a number that all sets have in common
    Added,
    /// opens the set again, once
    Again,
}

/// The case of a seed.
#[must_use]
pub fn case(seed: u64) -> Case {
    use Ending::{Added, Again, Barred, Nothing, Remembered};
    use Together::{Answers, Flow, Inside, Protocol, Source, Symmetric};
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x5e75);
    let intent = pick(
        &mut random,
        &[Intent::Statistics, Intent::PerKey, Intent::Statistics],
    );
    // Other draws than those of the grammar's cases: programs of handlers alone.
    let mut program = loop {
        let program = program(&mut random, intent);
        if program.dialect == Dialect::Handlers {
            break program;
        }
    };
    program.sets = Some(Sets {
        key: pick(
            &mut random,
            &[Flow, Answers, Answers, Symmetric, Source, Inside, Protocol],
        ),
        expires: pick(&mut random, &[1, 20, 200, 2000]),
        ending: pick(
            &mut random,
            &[Nothing, Remembered, Barred, Remembered, Added, Again],
        ),
        most: pick(&mut random, &[0, 0, 3, 10]),
        closes: chance(&mut random, 4).then(|| pick(&mut random, &[0, 3])),
        opens_at: chance(&mut random, 4).then_some(0),
    });
    let packets = traffic::packets(&mut random, Traffic::Mixed);
    Case {
        seed,
        program,
        packets,
    }
}

/// The handlers around `static int work(struct packet *p)`, and the declarations before it.
pub(super) fn around(sets: Sets) -> (String, String) {
    let own = match sets.key {
        Together::Source | Together::Inside => "struct address",
        Together::Protocol => "__u32",
        _ => "struct flow",
    };
    let mut before = String::from("#include <millrace/set.h>\n\n");
    let _ = writeln!(
        before,
        "struct of_set {{ __u64 packets, bytes; }};\nPACKET_SET(sets, {own}, struct of_set, .capacity = 4096, \
         .expire_after = MILLISECONDS({}));\n",
        sets.expires
    );
    if matches!(sets.ending, Ending::Remembered | Ending::Barred) {
        let _ = writeln!(
            before,
            "struct ended {{ __u64 times, packets, last; }};\nMAP(ended, {own}, struct ended, .capacity = 4096);\n"
        );
    }
    if sets.ending == Ending::Added {
        before.push_str(
            "struct sum { __u64 sets, packets; };\nVECTOR(sums, struct sum, .capacity = 1);\n\n",
        );
    }
    let name = match sets.key {
        Together::Flow => "*key = f;",
        Together::Answers => "if (p->port == WAN)\n\t\tflow_reverse(&f);\n\t*key = f;",
        Together::Symmetric => "flow_symmetric(&f);\n\t*key = f;",
        Together::Source => "*key = f.src;",
        Together::Inside => "*key = p->port == LAN ? f.src : f.dst;",
        Together::Protocol => "*key = f.protocol;",
    };
    let mut behind = format!(
        "SET_KEY(p, key)\n{{\n\tstruct flow f = {{}};\n\n\tif (!packet_flow(p, &f))\n\t\treturn 0;\n\t{name}\n\treturn 1;\n}}\n\n"
    );
    behind.push_str("ON_FIRST_PACKET(p, key)\n{\n");
    if let Some(port) = sets.opens_at {
        let _ = writeln!(
            behind,
            "\tif (p->port != {port})\n\t\treturn DROP_BECAUSE(unasked);"
        );
    }
    if sets.ending == Ending::Barred {
        behind.push_str(
            "\tstruct ended *before = map_get(&ended, key);\n\n\tif (before && before->times >= 2)\n\
             \t\treturn DROP_BECAUSE(barred);\n",
        );
    }
    behind.push_str(
        "\tif (!set_open(&sets, key, &(struct of_set){ 1, packet_length(p) }))\n\t\treturn DROP_BECAUSE(full);\n\
         \treturn work(p);\n}\n\n",
    );
    behind.push_str(
        "ON_PACKET(p, key, set)\n{\n\tset->packets++;\n\tset->bytes += packet_length(p);\n",
    );
    if sets.most > 0 {
        let _ = writeln!(
            behind,
            "\tif (set->packets > {})\n\t\treturn DROP_BECAUSE(enough);",
            sets.most
        );
    }
    if let Some(bit) = sets.closes {
        let _ = writeln!(
            behind,
            "\tif (packet_length(p) >> {bit} & 1)\n\t\tset_close(&sets, key);"
        );
    }
    behind.push_str("\treturn work(p);\n}\n\nON_ORPHAN(p)\n{\n\treturn FORWARD(peer(p));\n}\n");
    let ending = match sets.ending {
        Ending::Nothing => return (before, behind),
        Ending::Remembered | Ending::Barred => {
            "\tstruct ended *e = map_get(&ended, key);\n\n\tif (!e)\n\t\te = map_put(&ended, key, &(struct ended){ 0, 0, 0 });\n\
             \tif (!e)\n\t\treturn;\n\te->times++;\n\te->packets += set->packets;\n\te->last = p->time >> 10;\n"
        }
        Ending::Added => {
            "\tstruct sum *s = vector_at(&sums, 0);\n\n\tif (!s)\n\t\treturn;\n\ts->sets++;\n\ts->packets += set->packets;\n"
        }
        Ending::Again => {
            "\tif (set->packets)\n\t\tset_open(&sets, key, &(struct of_set){ 0, set->bytes });\n"
        }
    };
    let _ = write!(behind, "\nON_EXPIRY(p, key, set)\n{{\n{ending}}}\n");
    (before, behind)
}
