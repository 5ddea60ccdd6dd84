//! Where the bundled functions may send packets, as it is found without a proof.

use millrace::Make;
use millrace_dataplane::worker::Code;
use millrace_turns::of_today;

use super::of_repository;

/// What is known of a function: the ports that packets may leave at, by ingress port.
fn egress(name: &str) -> (bool, Vec<Option<u64>>) {
    let found = millrace::find(&of_repository(&format!("nfs/{name}"))).unwrap();
    let function = found.load(&Make::default(), &mut |_| {}).unwrap();
    let link = function.link(0, Vec::new(), true).unwrap();
    match link.code {
        Code::Module(code) => {
            let mut egress = code.behaviour.egress;
            egress.truncate(2);
            (code.behaviour.stateless, egress)
        }
        _ => unreachable!(),
    }
}

#[test]
fn functions_between_two_ports_send_packets_on() {
    let (lan, wan) = (Some(0b01), Some(0b10));
    let names = ["firewall", "nat", "policer", "cl", "lb", "psd", "hhh"];
    for name in of_today("handlers between two ports", names, 3) {
        assert_eq!(egress(name), (false, vec![wan, lan]), "{name}");
    }
    assert_eq!(egress("nop"), (true, vec![wan, lan]));
    // A parameter says whether it sends packets of the LAN back, and may be set while it runs.
    assert_eq!(egress("einat"), (false, vec![Some(0b11), lan]));
    // `XDP_TX` sends a packet back.
    let names = [
        "portknock",
        "heavyhitter",
        "ddos",
        "tokenbucket",
        "conntrack",
    ];
    for name in of_today("programs of XDP between two ports", names, 3) {
        assert_eq!(egress(name), (false, vec![lan, wan]), "{name}");
    }
    // Where a bridge sends a packet, its table says.
    for name in ["bridge", "sbridge"] {
        assert_eq!(egress(name), (false, vec![None, None]), "{name}");
    }
}
