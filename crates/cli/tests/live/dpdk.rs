//! Ports of DPDK: drivers of software, between files and between namespaces. Without the feature `dpdk`
//! of the build only its error is tested, and the rest says so.

use millrace_turns::its_turn;
use std::path::Path;
use std::time::Duration;

use super::instance::{Instance, command, count};
use super::net::Net;
use super::same::{bytes, generated, give_what_files_give, through_files};
use super::transfer::{both_directions, ping_and_traceroute, through};
use crate::common::{json, millrace, output, refused, success};

/// Drivers that stand between namespaces.
const DRIVERS: [&str; 2] = ["net_af_packet", "net_tap"];

/// Whether the build has them; said aloud when not.
fn built() -> bool {
    if !cfg!(feature = "dpdk") {
        println!("skipped: this build has no DPDK ports (feature `dpdk`)");
    }
    cfg!(feature = "dpdk")
}

#[test]
fn a_port_that_cannot_be_is_refused_with_the_reason() {
    let says = |word: &str, what: &str| {
        let text = refused(millrace().args(["run", "nfs/nop", "--in", word]), 2);
        assert!(text.contains(what), "{word}: {text}");
    };
    if !cfg!(feature = "dpdk") {
        says("dpdk:net_ring0", "this build has no DPDK ports");
        return;
    }
    says("dpdk:eth0", "neither an address on the PCI bus");
    says("dpdk:net_unheard0", "net_unheard0");
    says("dpdk:0000:ff:1e.6", "Cannot find device");
    says("dpdk:net_pcap0,rx_pcap=/nowhere.pcap", "No such file");
    says(
        "dpdk:net_af_packet0,iface=nowhere",
        "there is no interface `nowhere`",
    );
    says("dpdk:net_ring0?speed=1", "there is no such option");
    says("dpdk:net_ring0?key=00", "takes a key of 40 bytes");
    says("dpdk:net_ring0?steer=left", "`device` or `software`");
    says("dpdk:net_ring0?steer=device", "does not hash packets");
    says("dpdk:net_ring0?nic=e1000", "there is no model of a NIC");
    says("dpdk:net_ring0?fields=ports", "source-address");
    says("dpdk:net_null0?key=00", "takes a key of 40 bytes");
    says("dpdk:net_null0?ring=1", "a number from 32");
    says("dpdk:net_null0?mtu=70000", "a number from 0 to 60000");
    says(
        "dpdk:net_pcap0,rx_pcap=a.pcap,rx_pcap=b.pcap",
        "`rx_pcap` makes 2 queues",
    );
}

#[test]
fn missing_permission_is_named() {
    if built() {
        let af_packet = ["dpdk:net_af_packet0,iface=a1", "dpdk:net_tap0,iface=t0"];
        let says = ["not permitted"];
        super::faults::without_permission("net_af_packet", &af_packet, &says);
    }
}

#[test]
fn an_interface_that_is_down_is_named_and_one_of_any_mtu_is_taken() {
    if !built() {
        return;
    }
    let Some(net) = Net::new("net_af_packet") else {
        return;
    };
    let words = net.words("");
    let run = ["nfs/nop", "--ports", &words, "--seconds", "0.1"];
    net.ip("n", "link set a1 down");
    let text = refused(&mut command(&net, "n", &run), 2);
    assert!(
        text.contains("is down") && text.contains("ip link set a1 up"),
        "{text}"
    );
    net.ip("n", "link set a1 up");
    // Buffers are as large as the interface's packets.
    let set = |mtu: u32| {
        for (end, interface) in [("n", "a1"), ("a", "a0")] {
            net.ip(end, &format!("link set {interface} mtu {mtu}"));
        }
    };
    set(65535);
    let text = refused(&mut command(&net, "n", &run), 2);
    assert!(text.contains("the MTU of a1 is 65535"), "{text}");
    for mtu in [68, 9000, 60000] {
        set(mtu);
        let (ran, text) = output(&mut command(&net, "n", &run));
        assert!(ran.status.success(), "{mtu}: {text}");
    }
}

#[test]
fn net_pcap_gives_what_files_give() {
    if !built() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = generated(dir.path(), "2000");
    for function in ["firewall", "nat"] {
        let expected = through_files(dir.path(), &trace, function);
        let out = dir.path().join(format!("{function}.pcap"));
        let name = format!("nfs/{function}");
        let input = format!("dpdk:net_pcap0,rx_pcap={trace}");
        let to = format!("dpdk:net_pcap1,tx_pcap={}", out.display());
        let (account, status) = json(millrace().args(["run", &name, "--in", &input, "--out", &to]));
        assert_eq!((status, count(&account, "read")), (0, 2000), "{account:#}");
        assert_eq!(count(&account, "out_of_order"), 0);
        assert_eq!(bytes(&out), expected, "{function}");
    }
}

#[test]
fn net_ring_leads_packets_around_without_a_copy_or_a_loss() {
    if !built() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = generated(dir.path(), "2000");
    let out = dir.path().join("out.pcap");
    // Out at the second port, around the ring, in again, and out at the first.
    let ports = format!(
        "dpdk:net_pcap0,rx_pcap={trace},tx_pcap={},dpdk:net_ring0",
        out.display()
    );
    let run = ["run", "nfs/nop", "--ports", &ports, "--packets", "4000"];
    let (account, status) = json(millrace().args(run));
    assert_eq!(
        (status, count(&account, "forwarded")),
        (0, 4000),
        "{account:#}"
    );
    assert_eq!(bytes(&out), bytes(Path::new(&trace)));
}

/// Two workers on one receive and one transmit queue: all packets, those of each flow in order.
#[test]
fn two_workers_share_a_file_by_flows() {
    if !built() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = generated(dir.path(), "2000");
    let out = dir.path().join("out.pcap");
    let input = format!("dpdk:net_pcap0,rx_pcap={trace}?nic=e810");
    let to = format!("dpdk:net_pcap1,tx_pcap={}?steer=software", out.display());
    let run = [
        "run", "nfs/nop", "--in", &input, "--out", &to, "--cores", "2",
    ];
    let account = success(millrace().args(run));
    super::instance::balances(&account);
    let facts = account["facts"].to_string();
    assert!(facts.contains("RSS in software, of model e810"), "{facts}");
    assert_eq!(count(&account, "read"), 2000, "{account:#}");
    let workers = account["workers"].as_array().unwrap().iter();
    let each: Vec<_> = workers.map(|w| w["packets"].as_u64().unwrap()).collect();
    assert!(each.iter().all(|n| *n > 200), "{each:?}");
    // What did not fit into the ring of a worker that did not run is dropped, and said to be.
    let dropped = count(&account, "dropped");
    let (got, sent) = (bytes(&out), bytes(Path::new(&trace)));
    assert_eq!(got.len() as u64 + dropped, 2000, "{account:#}");
    if dropped == 0 {
        let by_flow = |mut packets: Vec<Vec<u8>>| {
            // Stable: packets of a flow stay in their order. Addresses and ports of IPv4.
            packets.sort_by_key(|p| p.get(26..38).map(<[u8]>::to_vec));
            packets
        };
        assert_eq!(by_flow(got), by_flow(sent));
    }
}

#[test]
fn tcp_goes_through_bridge_firewall_and_nat() {
    if !its_turn("TCP through functions on DPDK", 0, 3) {
        return;
    }
    if !built() {
        return;
    }
    for driver in DRIVERS {
        for function in ["bridge", "firewall", "nat"] {
            through(function, driver, false);
        }
        through("firewall", driver, true);
    }
}

#[test]
fn iperf3_and_curl_go_through_nat_firewall_and_bridge() {
    if !its_turn("iperf3 and curl on DPDK", 1, 3) {
        return;
    }
    if built() {
        DRIVERS.into_iter().for_each(super::tools::tools_go_through);
    }
}

#[test]
fn ping_and_traceroute_go_through_nat() {
    if built() {
        DRIVERS.into_iter().for_each(ping_and_traceroute);
    }
}

#[test]
fn the_same_trace_gives_the_same_packets() {
    if built() {
        give_what_files_give(&DRIVERS);
    }
}

#[test]
fn two_workers_share_an_interface() {
    if !its_turn("two workers of an interface on DPDK", 2, 3) {
        return;
    }
    if !built() {
        return;
    }
    // By the kernel, by ourselves from two queues, and from one.
    let all = ["", "?steer=software", "?nic=connectx5&symmetric"];
    for (driver, options) in DRIVERS.into_iter().flat_map(|d| all.map(|o| (d, o))) {
        let Some(net) = Net::new(driver) else { return };
        let args = ["nfs/nop", "--ports", &net.words(options), "--cores", "2"];
        let instance = Instance::start(&net, "n", &args);
        net.settle();
        // Flows of other ports each time, so that both workers have some.
        for _ in 0..4 {
            both_directions(&net);
        }
        let (account, status) = instance.stop();
        assert_eq!(status, 0, "{account:#}");
        let workers = account["workers"].as_array().unwrap().iter();
        let each: Vec<_> = workers.map(|w| w["packets"].as_u64().unwrap()).collect();
        assert_eq!(each.len(), 2);
        assert_eq!(each.iter().sum::<u64>(), count(&account, "read"));
        let facts = account["facts"].to_string();
        assert_eq!(
            facts.contains("RSS in software"),
            !options.is_empty(),
            "{facts}"
        );
        println!("{driver}{options}: {each:?} packets");
    }
}

#[test]
fn tcp_survives_faults_made_on_purpose_which_are_counted_and_recorded() {
    if built() {
        DRIVERS
            .into_iter()
            .for_each(super::faults::tcp_survives_faults);
    }
}

#[test]
fn jumbo_frames_are_counted_where_the_other_interface_does_not_take_them() {
    if built() {
        super::faults::jumbo_frames("net_af_packet");
    }
}

#[test]
fn frames_that_are_none_are_counted() {
    if built() {
        DRIVERS.into_iter().for_each(super::faults::odd_frames);
    }
}

#[test]
fn after_a_kill_a_restart_takes_the_interface_again() {
    if built() {
        DRIVERS
            .into_iter()
            .for_each(super::faults::restarts_after_a_kill);
    }
}

#[test]
fn an_interface_that_vanishes_ends_the_run_with_its_name() {
    if built() {
        DRIVERS.into_iter().for_each(super::faults::vanishes);
    }
}

#[test]
fn an_interface_that_goes_down_ends_the_run() {
    if !built() {
        return;
    }
    let Some(net) = Net::new("net_af_packet") else {
        return;
    };
    let instance = Instance::start(&net, "n", &["nfs/nop", "--ports", &net.words("")]);
    std::thread::sleep(Duration::from_millis(300));
    net.ip("n", "link set a1 down");
    let (account, status) = instance.ended();
    assert_eq!(status, 2, "{account:#}");
    let text = account["errors"].to_string();
    assert!(text.contains("went down or away"), "{account:#}");
}
