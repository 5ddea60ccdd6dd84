//! What goes wrong with an interface is named, and no packet is unaccounted.

use std::process::Command;
use std::time::Duration;

use super::instance::{Instance, command, count};
use super::net::{Net, run};
use crate::common::{output, refused};

fn says(command: &mut Command, what: &[&str]) {
    let text = refused(command, 2);
    for part in what {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_interface_that_is_missing_down_or_too_large_is_named() {
    let Some(net) = Net::new("afpacket") else {
        return;
    };
    let run = |word: &str| {
        command(
            &net,
            "n",
            &["nfs/nop", "--ports", &format!("{word},afpacket:b1")],
        )
    };
    for kind in ["afpacket", "afxdp"] {
        let missing = format!("{kind}:nowhere");
        says(
            &mut run(&missing),
            &[&missing, "there is no interface `nowhere`"],
        );
        says(
            &mut run(&format!("{kind}:{}", "x".repeat(40))),
            &["1 to 15 characters"],
        );
        net.ip("n", "link set a1 down");
        says(
            &mut run(&format!("{kind}:a1")),
            &["is down", "ip link set a1 up"],
        );
        net.ip("n", "link set a1 up");
    }
    says(
        &mut run("afpacket:a1?drip=1"),
        &["option `drip`", "there is no such option"],
    );
    says(&mut run("afpacket:b1"), &["named twice"]);
    net.ip("n", "link set a1 mtu 9000");
    says(&mut run("afxdp:a1"), &["the MTU of a1 is 9000", "mtu 3818"]);
    says(
        &mut command(
            &net,
            "n",
            &["nfs/nop", "--cores", "2", "--ports", "afxdp:b1"],
        ),
        &["2 workers, and b1 has 1 receive queues"],
    );
}

#[test]
fn missing_permission_is_named() {
    let says = ["not permitted", "sudo setcap cap_net_raw,cap_net_admin,"];
    without_permission("afpacket", &["afpacket:a1", "afxdp:a1", "tap:t0"], &says);
}

/// Opens ports without capabilities; each must say these things, and its word.
pub fn without_permission(kind: &'static str, words: &[&str], what: &[&str]) {
    let Some(net) = Net::new(kind) else { return };
    match run("setpriv", &["--version"]) {
        Ok(output) if output.status.success() => (),
        _ => {
            println!("skipped: there is no setpriv");
            return;
        }
    }
    for word in words {
        let inner = command(&net, "n", &["nfs/nop", "--ports", word]);
        let mut args = inner.get_args();
        // ip netns exec NAME, then without capabilities the rest
        let front: Vec<_> = args.by_ref().take(3).collect();
        let mut command = Command::new("ip");
        command
            .args(front)
            .args(["setpriv", "--bounding-set=-all", "--inh-caps=-all"])
            .args(args)
            .current_dir(crate::common::root());
        for (name, value) in inner.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        says(&mut command, &[&[*word], what].concat());
    }
}

#[test]
fn an_interface_that_vanishes_ends_the_run_with_its_name() {
    ["afpacket", "afxdp", "tap"].into_iter().for_each(vanishes);
}

/// Deletes an interface while it is in use.
pub fn vanishes(kind: &'static str) {
    let Some(net) = Net::new(kind) else { return };
    let instance = Instance::start(&net, "n", &["nfs/nop", "--ports", &net.words("")]);
    net.settle();
    let ping = ["-c", "2", "-i", "0.2", "-W", "5", "10.0.0.2"];
    assert!(net.within("a", "ping", &ping).status.success());
    net.ip("b", "link del b0");
    let (account, status) = instance.ended();
    assert_eq!(status, 2, "{account:#}");
    let error = account["errors"][0]["error"].as_str().unwrap();
    let interface = match kind {
        "tap" => "tap:b0",
        "net_tap" => "net_tap1,iface=b0",
        _ => "b1",
    };
    assert!(error.contains(interface), "{error}");
    assert!(error.contains("away while it was in use"), "{error}");
    assert!(count(&account, "read") >= 4, "{account:#}");
}

#[test]
fn after_a_kill_a_restart_takes_the_interface_again() {
    let kinds = ["afpacket", "afxdp", "tap"];
    kinds.into_iter().for_each(restarts_after_a_kill);
}

/// Kills a function; its interfaces are as before, and another takes them.
pub fn restarts_after_a_kill(kind: &'static str) {
    let Some(net) = Net::new(kind) else { return };
    let words = net.words("");
    let args = ["nfs/nop", "--ports", words.as_str()];
    let shown = |what: &str| {
        let shown = net.within("n", "ip", &["-d", "-o", "link", "show"]);
        String::from_utf8(shown.stdout).unwrap().contains(what)
    };
    let first = Instance::start(&net, "n", &args);
    first.killed();
    // Interfaces that it made go, and so does what it attached to others.
    for left in [" a0", "prog/xdp", "promiscuity 1"] {
        super::net::until(left, || !shown(left));
    }
    let second = Instance::start(&net, "n", &args);
    net.settle();
    let ping = ["-c", "2", "-i", "0.2", "-W", "5", "10.0.0.2"];
    assert!(net.within("a", "ping", &ping).status.success(), "{kind}");
    let (account, status) = second.stop();
    assert_eq!(status, 0, "{account:#}");
}

#[test]
fn a_second_instance_is_told_that_the_queue_is_taken() {
    let Some(net) = Net::new("afxdp") else { return };
    let words = net.words("");
    let first = Instance::start(&net, "n", &["nfs/nop", "--ports", &words]);
    says(
        &mut command(&net, "n", &["nfs/nop", "--ports", &words]),
        &["cannot attach the XDP program", "ip link set a1 xdp off"],
    );
    assert_eq!(first.stop().1, 0);
}

#[test]
fn jumbo_frames_pass_where_the_interface_takes_them_and_are_counted_where_not() {
    jumbo_frames("afpacket");
}

/// Sends frames that are longer than the second interface takes.
pub fn jumbo_frames(kind: &'static str) {
    let Some(net) = Net::new(kind) else { return };
    for (end, interface) in [("a", "a0"), ("n", "a1")] {
        net.ip(end, &format!("link set {interface} mtu 9000"));
    }
    let instance = Instance::start(&net, "n", &["nfs/nop", "--ports", &net.words("")]);
    net.settle();
    net.ip("b", "route add 10.0.9.0/24 dev b0");
    // ARP resolves; then packets of 8000 bytes reach the function and find an MTU of 1500.
    let small = ["-c", "1", "-W", "5", "10.0.0.2"];
    assert!(net.within("a", "ping", &small).status.success());
    let large = [
        "-c", "3", "-i", "0.2", "-W", "1", "-M", "do", "-s", "8000", "10.0.0.2",
    ];
    let output = net.within("a", "ping", &large);
    assert!(!output.status.success(), "{output:?}");
    std::thread::sleep(Duration::from_millis(200));
    let (account, status) = instance.stop();
    assert_eq!(status, 0, "{account:#}");
    let queues = account["queues"].as_array().unwrap();
    let failed: u64 = queues.iter().map(|q| q["failed"].as_u64().unwrap()).sum();
    assert_eq!(failed, 3, "{account:#}");
}

#[test]
fn frames_that_are_none_are_counted_on_every_kind_of_port() {
    for kind in ["afpacket", "afxdp", "tap"] {
        odd_frames(kind);
    }
}

/// Sends frames without a byte, shorter than an Ethernet header, and longer than any device takes.
pub fn odd_frames(kind: &'static str) {
    let Some(net) = Net::new(kind) else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (trace, got) = (path("odd.pcap"), path("got.pcap"));
    let lengths = [60, 0, 1, 13, 60, 14, 9000, 65535, 60];
    let packets: Vec<_> = (lengths.iter().enumerate())
        .map(|(at, length)| (1000 + at as u64, vec![0x88; *length]))
        .collect();
    crate::common::capture(dir.path().join("odd.pcap").as_path(), &packets);
    let out = net.words("");
    let out = out.rsplit_once(&format!(",{}", out.split(':').next().unwrap()));
    let out = out.unwrap().0;
    let own = kind == "tap" || kind == "net_tap";
    let recorder = (!own).then(|| {
        let args = ["nfs/nop", "--in", "afpacket:a0", "--out", &got];
        Instance::start(&net, "a", &args)
    });
    let args = ["nfs/nop", "--in", &trace, "--out", out, "--json"];
    let (ran, text) = output(&mut command(&net, "n", &args));
    assert!(ran.status.success(), "{kind}: {text}");
    let account: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    super::instance::balances(&account);
    assert_eq!(count(&account, "read"), lengths.len() as u64);
    let sent = count(&account, "forwarded");
    let queues = account["queues"].as_array().unwrap().iter();
    let failed: u64 = queues.map(|q| q["failed"].as_u64().unwrap()).sum();
    assert_eq!(sent, count(&account, "read"), "{kind}: {account:#}");
    // A tap takes frames longer than its MTU.
    assert_eq!(
        failed,
        if kind == "tap" { 3 } else { 5 },
        "{kind}: {account:#}"
    );
    let Some(recorder) = recorder else { return };
    std::thread::sleep(Duration::from_millis(300));
    let (there, status) = recorder.stop();
    assert_eq!(status, 0, "{there:#}");
    assert_eq!(count(&there, "read") + failed, sent, "{kind}: {there:#}");
}

#[test]
fn a_flood_faster_than_a_small_ring_is_accounted_to_the_last_packet() {
    let Some(net) = Net::new("afpacket") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace.pcap");
    let trace = trace.to_str().unwrap();
    let make = format!("trace gen --packets 20000 --flows 20 -o {trace}");
    let make = crate::common::words(&make);
    let (made, text) = output(crate::common::millrace().args(make));
    assert!(made.status.success(), "{text}");
    let words = net.words("?blocks=2&frames=512");
    let function = Instance::start(&net, "n", &["nfs/nop", "--ports", &words]);
    net.settle_silent();
    let play = ["nfs/nop", "--in", trace, "--out", "afpacket:a0", "--json"];
    let (played, text) = output(&mut command(&net, "a", &play));
    assert!(played.status.success(), "{text}");
    let played: serde_json::Value = serde_json::from_slice(&played.stdout).unwrap();
    super::instance::balances(&played);
    let sent = count(&played, "forwarded");
    std::thread::sleep(Duration::from_millis(500));
    let (account, status) = function.stop();
    assert_eq!(status, 0, "{account:#}");
    let queues = account["queues"].as_array().unwrap();
    let missed: u64 = queues.iter().map(|q| q["missed"].as_u64().unwrap()).sum();
    // Every packet that left arrived, or was counted as lost by the ring.
    assert_eq!(count(&account, "read") + missed, sent, "{account:#}");
}

#[test]
fn tcp_survives_faults_made_on_purpose_which_are_counted_and_recorded() {
    tcp_survives_faults("afpacket");
}

/// Transfers through a port that loses, repeats, reorders and damages packets.
pub fn tcp_survives_faults(kind: &'static str) {
    let Some(net) = Net::new(kind) else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.pcapng");
    let options = "drop=0.002&duplicate=0.005&reorder=0.002&corrupt=0.002&seed=3";
    let record = format!("record={}", file.display());
    let words = net.words_of(&format!("?{options}&{record}"), "");
    let instance = Instance::start(&net, "n", &["nfs/nop", "--ports", &words]);
    net.settle();
    super::transfer::both_directions(&net);
    let (account, status) = instance.stop();
    assert_eq!(status, 0, "{account:#}");
    let queue = &account["queues"][0];
    for what in ["discarded", "duplicated", "altered"] {
        assert!(queue[what].as_u64().unwrap() > 0, "{what}: {queue}");
    }
    let recorded = crate::common::read(&file);
    let port = &account["ports"][0];
    for (interface, name) in [(0, "read"), (1, "sent")] {
        let packets = recorded.iter().filter(|(i, _, _)| *i == interface).count();
        assert_eq!(Some(packets as u64), port[name].as_u64(), "{name}");
    }
}

/// Packets of the new size go through without a restart; of those that came first at most a few are lost, and told.
#[test]
fn an_mtu_that_is_raised_while_it_runs_is_followed() {
    for kind in ["afpacket", "tap"] {
        let Some(net) = Net::new(kind) else { return };
        let instance = Instance::start(&net, "n", &["nfs/nop", "--ports", &net.words("")]);
        net.settle();
        let ends = [("a", "a0"), ("b", "b0"), ("n", "a1"), ("n", "b1")];
        for (end, interface) in ends.into_iter().filter(|e| e.0 != "n" || kind != "tap") {
            net.ip(end, &format!("link set {interface} mtu 9000"));
        }
        // Of 8000 bytes, in one packet each.
        let ping = [
            "-c", "30", "-i", "0.2", "-W", "2", "-M", "do", "-s", "8000", "10.0.0.2",
        ];
        let done = net.within("a", "ping", &ping);
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        let answered = said.matches("8008 bytes from 10.0.0.2").count();
        let (account, status) = instance.stop();
        assert!(
            answered >= 20,
            "{kind}: {answered} answers: {said} {account:#}"
        );
        assert_eq!(status, 0, "{kind}: {account:#}");
        let lost = &account["lost"];
        let few = |what: &str| lost[what].as_u64().is_some_and(|n| n <= 10);
        assert!(few("unfit") && few("failed"), "{kind}: {account:#}");
    }
}
