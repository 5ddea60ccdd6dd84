//! The example of the SNF paper (Katsikas et al., PeerJ Computer Science 2:e98, 2016): its figure 6 and what it counts.

use std::path::Path;

use millrace_synth::classes::{Class, classes};
use millrace_synth::operations::{Cost, Operations, costs};
use millrace_synth::{Options, Synthesis, graph, picture, synthesise};

fn chain(name: &str) -> Synthesis {
    let path = format!("{}/../../chains/{name}.click", env!("CARGO_MANIFEST_DIR"));
    let path = Path::new(&path);
    let done = graph(path)
        .and_then(|graph| synthesise(name, graph, path.parent().unwrap(), Options::default()));
    done.unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Figure 6: UDP to port 1234 leaves with all that three functions write, written once; TCP as the NAPT leaves it; the rest is dropped.
/// The Ethernet source is that of the balancer: the figure keeps the first function's, whose bytes the last one overwrites.
#[test]
fn classes_of_the_example_are_those_of_figure_6() {
    let of = chain("example/example");
    let all = classes(&of);
    let forward: Vec<&Class> = all.iter().filter(|c| c.verdict == "forward").collect();
    let [tcp, udp] = forward.as_slice() else {
        panic!("{forward:#?}");
    };
    assert_eq!(tcp.device.as_deref(), Some("domain1"));
    assert_eq!(tcp.behind, ["napt"]);
    let writes = [
        "ether dst = 02:00:00:00:00:02",
        "ether src = 02:00:00:00:00:01",
        "ether type = 0x0800",
        "ip dst = 10.1.1.2",
        "ip ttl -= 1",
        "ip sum by difference",
        "transport sum by difference",
        "padding cut",
    ];
    assert_eq!(tcp.writes, writes);
    assert!(
        tcp.packets.iter().all(|p| p.contains("ip proto tcp")),
        "{tcp:#?}"
    );
    assert_eq!(udp.device.as_deref(), Some("domain0"));
    assert_eq!(udp.behind, ["napt", "lb"]);
    let writes = [
        "ether dst = 02:00:00:00:00:06",
        "ether src = 02:00:00:00:00:05",
        "ether type = 0x0800",
        "ip dst = one of 10.0.1.1, 10.0.1.2",
        "ip src = 10.0.0.1",
        "src port = one of 1000-9000",
        "ip ttl -= 3",
        "ip sum by difference",
        "transport sum by difference",
        "padding cut",
    ];
    assert_eq!(udp.writes, writes);
    for packets in &udp.packets {
        for part in ["ip proto udp", "dst port 1234", "ip ttl >= 4"] {
            assert!(packets.contains(part), "{packets}");
        }
    }
    // What figure 6 leaves out: a mapping for what the firewall drops, and packets that are cut to pieces.
    let rest: Vec<&str> = all
        .iter()
        .map(|c| c.verdict)
        .filter(|v| *v != "forward")
        .collect();
    assert!(
        rest.iter().all(|v| ["drop", "hand-over"].contains(v)),
        "{rest:?}"
    );
}

/// "The initial chain calculates the TTL field 3 times and IP checksum 5 times, whereas only one computation suffices."
#[test]
fn operations_of_the_example_are_merged() {
    let of = chain("example/example");
    let all = costs(&of);
    let udp = all.iter().find(|c| c.device == "domain0").unwrap();
    // The sum that CheckIPHeader verifies, three times to live, and two of each rewriter, for IP and UDP.
    assert_eq!(udp.before.checksums, 1 + 3 + 4);
    assert_eq!(udp.after.checksums, 1 + 2);
    // Ethernet header, time to live, three words.
    assert_eq!(udp.after.writes, 3 + 1 + 3);
    assert_eq!((udp.before.lookups, udp.after.lookups), (3, 1));
    let of_tcp = all.iter().find(|c| c.device == "domain1").unwrap();
    assert!(of_tcp.before.checksums > of_tcp.after.checksums);
}

/// Ten routers cost what one does.
#[test]
fn operations_of_routers_do_not_grow() {
    let (one, ten) = (
        costs(&chain("routers/routers-1")),
        costs(&chain("routers/routers-10")),
    );
    // The longest way: a router sends some packets back at once.
    let to = |costs: &[Cost], device: &str| -> (Operations, Operations) {
        let all = costs.iter().filter(|c| c.device == device);
        let cost = all.max_by_key(|c| c.elements).unwrap();
        (cost.before, cost.after)
    };
    for device in ["inside", "outside"] {
        let ((before, after), (all, merged)) = (to(&one, device), to(&ten, device));
        assert_eq!(after, merged, "{device}");
        assert_eq!(all.lookups, 10 * before.lookups, "{device}");
        assert_eq!(all.checksums, 10 * before.checksums, "{device}");
    }
}

#[test]
fn pictures_have_all_elements_and_escape_names() {
    let of = chain("example/example");
    let both = [picture::before(&of), picture::after(&of)];
    assert_eq!(both[0].shapes.len(), of.router.graph().elements.len());
    let dot = picture::dot(&both, "a \"note\"");
    assert!(
        dot.contains("a \\\"note\\\"") && dot.contains("rankdir=LR"),
        "{dot}"
    );
    assert!(
        dot.contains("IPRewriter") && dot.contains("write once"),
        "{dot}"
    );
    let html = picture::html("<example>", &both, &costs(&of));
    assert!(html.contains("&lt;example&gt;") && !html.contains("<example>"));
    assert_eq!(
        html.matches("<rect ").count(),
        both[0].shapes.len() + both[1].shapes.len()
    );
    // Every box is at a place of its own.
    assert!(both[1].edges.iter().all(|(from, to, _)| from != to));
}
