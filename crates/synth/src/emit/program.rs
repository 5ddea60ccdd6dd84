//! What packets of known flows do, as C: a program for each, the update of the entry, and the maps.

use std::fmt::Write as _;

use super::{Emitter, Known};
use crate::action::Verdict;
use crate::diagram::Id;

impl Emitter<'_> {
    /// The programs of flows, the update of an entry, and what follows.
    pub(super) fn programs(&mut self) {
        let flows = &self.of.flows;
        if flows.openings.is_empty() {
            return;
        }
        let header = flows.openings.values().next().map_or(14, |o| o.header);
        let known = Known {
            frame: u32::from(header) + 20,
            ip: Some(header),
            upper: 8,
            behind: Some(header),
            ..Known::default()
        };
        let _ = writeln!(self.out, "\nrun:");
        self.line = None;
        let rewriter = self.of.rewriters.first().copied();
        rewriter.into_iter().for_each(|id| self.at(id));
        let count = flows.programs.len();
        for n in 1..count {
            self.say(1, &format!("if (program == {n})"));
            self.say(2, &format!("goto program_{n};"));
        }
        let leases = !flows.leases().is_empty();
        for (n, program) in flows.programs.iter().enumerate() {
            let name = label("program", n);
            let _ = writeln!(self.out, "\n{name}");
            self.way = program.hops;
            self.program = Some(*program);
            if leases {
                self.locals.insert("lease".into(), "__u32");
                let lease = program.lease.map_or(0, |l| l + 1);
                self.say(
                    1,
                    &format!("lease = {lease}; /* the allocator of its port */"),
                );
            }
            self.say(1, &format!("frame = packet_bytes(p, 0, {});", known.frame));
            self.say(1, "if (!frame)");
            self.say(2, "return DROP;");
            self.say(1, &format!("ip = (struct ipv4 *)(frame + {header});"));
            // Packets that come here have all of the transport header that is tested of them: `Work::shaped`.
            let bytes = self.tested(program.root);
            if bytes > 0 {
                let at = format!("{header} + ipv4_header_bytes(ip)");
                self.say(1, &format!("upper = packet_bytes(p, {at}, {bytes});"));
                self.say(1, "if (!upper)");
                self.say(2, "return DROP;");
            }
            let plain = Known {
                upper: bytes,
                ..known
            };
            self.locals.insert("*frame".into(), "__u8");
            self.region(program.root, plain);
            self.way = 0;
        }
        self.program = None;
        let longest = flows.longest();
        // Where all ages are the same, flags tell nothing.
        let same = [longest.tcp, longest.done, longest.nodata] == [longest.other; 3];
        let keep = self.keep_text();
        let keep = KEEP
            .replace("UPDATE", &keep)
            .replace("UDP", if same { "1" } else { "0" })
            .replace("AT,", &format!("{header},"));
        let mut keep = keep.replace("AT +", &format!("{header} +"));
        if !flows.answered() {
            // Nobody is told from another by answers.
            let from = keep.find("		if (fresh.range").unwrap_or(0);
            let to = keep.find("		fresh.to = to;").unwrap_or(from);
            keep.replace_range(from..to, "");
            let from = keep.find("		if (fresh.answered").unwrap_or(0);
            let to = keep.find("	} else {\n		touch").unwrap_or(from);
            keep.replace_range(from..to, "");
        }
        let (mut lease, mut refresh) = (String::new(), String::new());
        for (n, _) in flows.leases().iter().enumerate() {
            let (one, name) = (n + 1, format!("leases_{n}"));
            self.locals.insert("number".into(), "__s64");
            let _ = write!(
                lease,
                "\t\tif (lease == {one}) {{\n\t\t\tnumber = allocator_lease(&{name}, &key);\n\t\t\tif (number < 0)\n\t\t\t\treturn DROP_BECAUSE(no_words);\n\t\t\tto.sport = htons(number);\n\t\t\tfresh.port = number;\n\t\t}}\n"
            );
            let _ = write!(
                refresh,
                "\t\tif (lease == {one})\n\t\t\tallocator_refresh(&{name}, entry->port);\n"
            );
        }
        let keep = keep.replace("LEASE\n", &lease).replace("REFRESH", &refresh);
        self.line = None;
        rewriter.into_iter().for_each(|id| self.at(id));
        self.out.push_str(&keep);
        let leaves = std::mem::take(&mut self.leaves);
        for n in 1..leaves.len() {
            self.say(1, &format!("if (leaf == {n})"));
            self.say(2, &format!("goto leave_{n};"));
        }
        for (n, (number, _)) in leaves.iter().enumerate() {
            let name = label("leave", n);
            let _ = writeln!(self.out, "\n{name}");
            self.line = None;
            if let Some(action) = &crate::flows::lean(self.of, *number) {
                if matches!(action.verdict, Verdict::Leave { .. }) {
                    let protocol = action.writes.values().map(|w| w.sums.upper).max();
                    let bytes = if protocol == Some(6) { 18 } else { 8 };
                    let known = Known {
                        upper: bytes,
                        ..known
                    };
                    self.again(known);
                    self.say(1, &format!("frame = packet_bytes(p, 0, {});", known.frame));
                    self.say(1, "if (!frame)");
                    self.say(2, "return DROP;");
                    self.finish(action, known, 1);
                } else {
                    self.finish(action, known, 1);
                }
            }
        }
        self.locals.insert("sum".into(), "__u64");
    }

    /// Bytes of the transport header that a diagram tests.
    fn tested(&self, root: Id) -> u32 {
        let nodes = self.of.store.reachable(root).into_iter();
        let tops = nodes.filter_map(|id| self.of.store.top(id));
        tops.map(|var| self.reads_upper(var)).max().unwrap_or(0)
    }

    /// Declarations of the maps.
    pub(super) fn state(&self) -> String {
        let flows = &self.of.flows;
        if flows.openings.is_empty() {
            return String::new();
        }
        let t = flows.longest();
        let longest = t.longest();
        let mut objects = String::new();
        if flows.answered() {
            objects.push_str(
                "MAP(answers, struct words, struct words, .capacity = CAPACITY, .expire_after = ANSWERED_FOR);",
            );
        }
        for (n, (low, count)) in flows.leases().iter().enumerate() {
            let _ = write!(
                objects,
                "ALLOCATOR(leases_{n}, struct words, .capacity = {count}, .first = {low}, .expire_after = LONGEST);"
            );
        }
        let mut state = format!(
            "{}{WORDS_OF_FLOWS}{}",
            self.times_text(longest),
            self.entry_text()
        );
        if !flows.answered() {
            let from = state.find("/* The answer's words").unwrap_or(0);
            let to = state.find("/* A packet keeps a flow").unwrap_or(from);
            state.replace_range(from..to, "");
        }
        state
            .replace("ANSWERS", &objects)
            .replace("CAPACITY", &flows.capacity.min(1 << 20).to_string())
            .replace("AGE_TCP", &t.tcp.to_string())
            .replace("AGE_DONE", &t.done.to_string())
            .replace("AGE_NODATA", &t.nodata.to_string())
            .replace("AGE_OTHER", &t.other.to_string())
    }
}

/// A label; the first is jumped to by nobody.
fn label(name: &str, n: usize) -> String {
    match n {
        0 => format!("\t/* {name} 0 */"),
        n => format!("{name}_{n}:"),
    }
}

const WORDS_OF_FLOWS: &str = "
/* Words of a flow, and the rewriter that they are seen by first. */
struct words {
	__be32 source, destination;
	__be16 sport, dport;
	__u8 protocol, rewriter;
	__u16 zero;
};

/* What they become. */
struct new_words {
	__be32 source, destination;
	__be16 sport, dport;
};

/* Addresses and ports that a new flow may have, host order. */
struct range {
	__u32 address, addresses;
	__u32 port, ports;
	__u32 own; /* the packet's own port comes first */
};
";

const KEEP: &str = "
keep:
	ip = packet_at(p, AT, struct ipv4);
	if (!ip)
		return DROP;
	flags = 0;
	data = 0;
	tcp = key.protocol == PROTOCOL_TCP && !UDP;
	if (tcp) {
		upper = packet_bytes(p, AT + ipv4_header_bytes(ip), 18);
		if (!upper)
			return DROP;
		flags = upper[13];
		data = ntohs(ip->length) > ipv4_header_bytes(ip) + (upper[12] >> 4) * 4;
	}
UPDATE";
