//! Keys whose fields are behind headers that the path leaves open.

use std::path::Path;

use millrace_report::html::html;
use millrace_report::report;
use millrace_report::text::text;

use crate::models;

/// The functions whose keys come from packets with VLAN tags, and from packets that ICMP errors carry.
#[test]
fn keys_of_functions_are_made_of_fields() {
    for name in ["firewall", "nat"] {
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../nfs/{name}/{name}.c"));
        let Some(loaded) = models::compile(&source) else {
            return;
        };
        let model = loaded.model();
        let report = report(&model, &loaded.program, &loaded.types);
        let (text, page) = (text(&report, false), html(&report));
        let keys = text.lines().filter(|l| l.trim_start().starts_with("key "));
        for key in keys {
            assert!(!key.contains("f("), "{name}: {key}");
        }
        assert!(!page.contains("pkt[f("), "{name}");
        // The addresses of the packet that an ICMP error carries, whatever is in front of it.
        assert!(text.contains("inner.ip.src"), "{name}: {text}");
    }
}
