//! The file around the code of a function: what it includes and declares, and how packets end.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Emitter, Known, condition};
use crate::Synthesis;
use crate::action::{Action, Verdict};

impl Emitter<'_> {
    pub(super) fn finish(&mut self, action: &Action, known: Known, depth: usize) {
        match action.verdict {
            Verdict::Drop(element) | Verdict::Again(element) => {
                self.at(element);
                let reason = reason(self.of, element);
                self.say(depth, &format!("return DROP_BECAUSE({reason});"));
            }
            Verdict::Hand(element) => {
                self.at(element);
                let code = match self.of.number(element) {
                    Some(number) => format!("return HAND_OVER({number});"),
                    None => "return PASS;".into(),
                };
                self.say(depth, &code);
            }
            Verdict::Leave { element, port } => {
                self.at(element);
                self.writes(action, known, depth);
                self.say(depth, &format!("return FORWARD({port});"));
            }
            Verdict::Pass(element) => {
                self.at(element);
                self.writes(action, known, depth);
                self.say(depth, "return PASS;");
            }
            Verdict::State(_) => self.say(depth, "return PASS;"),
        }
    }

    /// The whole file around the function's code.
    pub(super) fn frame(self) -> String {
        let mut text = String::new();
        let graph = self.of.router.graph();
        let _ = writeln!(
            text,
            "/* {}: {} elements, synthesised. */\n#include <millrace/nf.h>",
            self.of.name,
            graph.elements.len()
        );
        if self.needs.adjust {
            text.push_str("#include <millrace/adjust.h>\n");
        }
        if !self.of.flows.openings.is_empty() {
            text.push_str("#include <millrace/ipv4.h>\n");
        }
        let names: Vec<String> = self.of.ports.iter().map(|p| condition::word(p)).collect();
        let _ = writeln!(text, "\nPORTS({});", names.join(", "));
        for (needed, helper) in [(self.needs.loose, LOOSE), (self.needs.cut_room, CUT_ROOM)] {
            if needed {
                text.push('\n');
                text.push_str(helper);
            }
        }
        text.push_str(&self.choices.declared());
        text.push_str(&self.lists_declared());
        text.push_str(&self.state());
        text.push_str("\nON_PACKET(p)\n{\n");
        let mut by_type: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, kind) in &self.locals {
            by_type.entry(kind).or_default().push(name);
        }
        for (kind, names) in by_type {
            let _ = writeln!(text, "\t{kind} {};", names.join(", "));
        }
        text.push('\n');
        text.push_str(&self.out);
        text.push_str("}\n");
        text.push_str(&self.choices.data(&self.of.store));
        text.push_str(&self.lists_data());
        text
    }
}

/// The reason for which an element drops: its name.
#[must_use]
pub fn reason(of: &Synthesis, element: usize) -> String {
    let graph = of.router.graph();
    let own = element.checked_sub(graph.elements.len());
    let own = own.and_then(|n| of.drops.get(n)).map(String::as_str);
    let name = graph.elements.get(element).map(|e| e.name.as_str());
    let name = own.or(name);
    name.map_or_else(|| "discarded".into(), condition::word)
}

const LOOSE: &str = "/* The IP header at an offset, whatever its sum, or NULL. */
MILLRACE_INLINE struct ipv4 *ipv4_without_sum(const struct packet *p, __u32 at)
{
	struct ipv4 *ip = packet_at(p, at, struct ipv4);
	__u32 header, length;

	if (!ip || ip->version_ihl >> 4 != 4)
		return NULL;
	header = ipv4_header_bytes(ip);
	length = ntohs(ip->length);
	if (header < sizeof(struct ipv4) || length < header || at + length > packet_length(p))
		return NULL;
	return ip;
}
";

const CUT_ROOM: &str = "/* The transport header, if the IP packet has so many bytes of it. */
MILLRACE_INLINE void *transport_within(const struct packet *p, const struct ipv4 *ip, __u32 at,
				       __u32 bytes)
{
	__u32 header = ipv4_header_bytes(ip);

	if (ntohs(ip->length) < header + bytes)
		return NULL;
	return packet_bytes(p, at + header, bytes);
}
";
