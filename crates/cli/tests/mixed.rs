//! A chain of everything at once, from one file, on two cores: a Click firewall, our NAT, tcpdump as a guest, and xdp-filter of Debian's
//! xdp-tools, whose object nobody here compiled. Each packet has one fate, and each element gets what the one before it sent.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::stream::installed;
use crate::common::{capture, millrace, read, root, success};

const FIREWALL: &str = "
FromDevice(lan) -> Strip(14) -> CheckIPHeader
  -> out :: IPFilter(deny udp dst port 53, allow tcp or udp, drop all)
  -> Unstrip(14) -> Queue -> ToDevice(wan);
FromDevice(wan) -> Strip(14) -> CheckIPHeader
  -> in :: IPFilter(allow tcp or udp, drop all)
  -> Unstrip(14) -> Queue -> ToDevice(lan);
";

/// The object that lets all through but TCP of ports that its map names, which is empty here; where xdp-tools is installed.
fn filter() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?;
    let mut places = folders.filter_map(|f| Some(f.ok()?.path().join("bpf/xdpfilt_alw_tcp.o")));
    let found = places.find(|p| p.exists());
    if found.is_none() {
        println!("skipped: xdp-tools is not installed");
    }
    found
}

/// Writes the chain and all that it names; its file.
fn chain(folder: &Path, object: &Path, link: &str) -> PathBuf {
    std::fs::write(folder.join("firewall.click"), FIREWALL).unwrap();
    let text = format!(
        "cores = 2\nlink = \"{link}\"\n\
         [[element]]\nname = \"fw\"\nclick = \"firewall.click\"\n\
         [[element]]\nname = \"nat\"\nnf = \"{}\"\n\
         [[element]]\nname = \"tap\"\nguest = \"tcpdump -n -i @ -w {}/seen-{{class}}.pcap\"\n\
         [[element]]\nname = \"filter\"\nnf = \"{}\"\n",
        root().join("nfs/nat").display(),
        folder.display(),
        object.display(),
    );
    let file = folder.join("mixed.toml");
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn a_click_firewall_a_nat_a_guest_and_an_xdp_program_on_two_cores() {
    account_is_exact("no");
}

/// The firewall and the NAT are one program; the guest and the program of strangers stay. `MILLRACE_LONG=1`: their model takes 40 s of a
/// processor, and what links in a chain is tested with smaller ones (`linked::`).
#[test]
fn the_same_with_what_links_linked() {
    if std::env::var_os("MILLRACE_LONG").is_none() {
        eprintln!(
            "skipped: a Click firewall and a NAT that are linked between others on two cores (MILLRACE_LONG=1)"
        );
        return;
    }
    account_is_exact("yes");
}

fn account_is_exact(link: &str) {
    let (true, Some(object)) = (installed("tcpdump"), filter()) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let file = chain(dir.path(), &object, link);
    // Each side at a port of its own, at a rate that workers keep up with on a busy machine.
    let packets = read(&root().join("captures/talk.pcap"));
    let is_lan = |frame: &[u8]| frame[12..14] == [8, 0] && frame[26] == 10;
    let (lan, wan): (Vec<_>, Vec<_>) = { packets.into_iter() }.partition(|p| is_lan(&p.2));
    let side = |name: &str, packets: &[(u32, u64, Vec<u8>)]| {
        let path = dir.path().join(name);
        let packets = packets
            .iter()
            .map(|(_, time, frame)| (*time, frame.clone()));
        capture(&path, &packets.collect::<Vec<_>>());
        format!("vnic:{}?rate=6k&depth=4096&measure=off", path.display())
    };
    let inputs = [side("lan.pcap", &lan), side("wan.pcap", &wan)].join(",");
    let passed = dir.path().join("passed.pcap");
    let mut run = millrace();
    run.args(["run", file.to_str().unwrap(), "--in", &inputs]);
    run.args(["--pass", passed.to_str().unwrap()]);
    let account = success(&mut run);

    let number = |of: &Value| of.as_u64().unwrap();
    let fate = |name: &str| number(&account[name]);
    let fates = ["forwarded", "dropped", "passed", "consumed", "aborted"];
    assert_eq!(fate("read"), (lan.len() + wan.len()) as u64, "{account}");
    assert_eq!(
        fate("read"),
        fates.iter().map(|f| fate(f)).sum::<u64>(),
        "one fate a packet: {account}"
    );
    let stages = account["stages"].as_array().unwrap();
    let through = |name: &str| {
        let stage = stages.iter().find(|s| s["name"] == name);
        number(&stage.unwrap_or_else(|| panic!("{name}: {account}"))["packets"])
    };
    let reasons = account["reasons"].as_object().unwrap();
    let lost = |element: &str| -> u64 {
        let own = |(reason, n): (&String, &Value)| {
            reason.split(':').next().filter(|e| *e == element)?;
            Some(number(n))
        };
        reasons.iter().filter_map(own).sum()
    };
    // xdp-filter says XDP_PASS, so that a packet from either side ends there; those of the LAN come through all others.
    assert!(lost("fw") > 0, "{account}");
    match link {
        "no" => {
            assert_eq!(through("fw"), lan.len() as u64);
            assert_eq!(through("nat"), through("fw") - lost("fw"));
        }
        _ => assert_eq!(through("fw+nat"), lan.len() as u64),
    }
    assert_eq!(through("tap"), lan.len() as u64 - lost("fw") - lost("nat"));
    assert_eq!(through("filter"), through("tap") + wan.len() as u64);
    assert_eq!(fate("passed"), through("filter") - lost("filter"));
    assert_eq!(fate("dropped"), lost("fw") + lost("nat") + lost("filter"));
    assert_eq!(read(&passed).len() as u64, fate("passed"));
    assert_eq!(lost("filter"), 0, "{account}");
    // The guest of each class has written what its class sent through it.
    let files = std::fs::read_dir(dir.path()).unwrap().map(|f| f.unwrap());
    let seen = files.filter(|f| f.file_name().to_string_lossy().starts_with("seen-"));
    let seen: Vec<usize> = seen.map(|f| read(&f.path()).len()).collect();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert_eq!(seen.iter().sum::<usize>() as u64, through("tap"));
}
