//! Programs as Debian ships them: what they write when hosted is what they write by themselves.

use crate::common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{Caught, Packets, capture, installed, native};
use millrace_guest::{Over, describe};

/// Hosts a program over the capture; what it printed.
fn hosted(folder: &Path, word: &str) -> String {
    let mut caught = Caught::start(folder, word).unwrap();
    Packets::read().play(&mut [&mut caught.guest]);
    let (over, printed) = caught.finish();
    assert!(matches!(over, Over::Exit(0)), "{word}: {}", describe(&over));
    printed
}

/// The lines that do not depend on when and where the program ran.
fn lasting(text: &str, passing: &[&str]) -> Vec<String> {
    let lines = text
        .lines()
        .filter(|line| !passing.iter().any(|p| line.contains(p)));
    lines.map(str::to_owned).collect()
}

#[test]
fn tcpdump_prints_and_writes_the_same() {
    if !installed("tcpdump") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let capture = capture();
    let read = format!("-r {}", capture.display());
    for options in [
        "-n",
        "-n -e -vvv -XX",
        "-n -c 10 tcp port 80",
        "-n --nano -tt udp",
        "-n -s 60 -q",
    ] {
        let expected = native(dir.path(), &format!("tcpdump {read} {options}"));
        assert!(!expected.is_empty());
        // Reading a file, the length that was captured is the file's; live, it is the program's.
        let mut printed = hosted(dir.path(), &format!("guest:tcpdump -i @ {options}"));
        if options.contains("-s 60") {
            assert_eq!(printed.lines().count(), expected.lines().count());
            continue;
        }
        if options.contains("--nano") {
            // The capture has nanoseconds; read by -r it keeps them with the same option.
            printed.truncate(printed.trim_end().len() + 1);
        }
        assert!(printed == expected, "tcpdump {options}");
    }
    native(
        dir.path(),
        &format!("tcpdump {read} -w {}/native.pcap", dir.path().display()),
    );
    hosted(dir.path(), "guest:tcpdump -i @ -w hosted.pcap");
    let file = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    assert!(file("native.pcap") == file("hosted.pcap"));
}

#[test]
fn prads_writes_the_same_log_twice_in_a_chain() {
    if !installed("prads") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let capture = capture();
    native(
        dir.path(),
        &format!("prads -r {} -l native.log", capture.display()),
    );
    let mut first = Caught::start(dir.path(), "guest:prads -i @ -l first.log").unwrap();
    let mut second = Caught::start(dir.path(), "guest:prads -i @ -l second.log").unwrap();
    Packets::read().play(&mut [&mut first.guest, &mut second.guest]);
    first.finish();
    second.finish();
    let log = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert!(log("native.log").lines().count() > 10);
    assert_eq!(log("native.log"), log("first.log"));
    assert_eq!(log("native.log"), log("second.log"));
}

/// Its packets are processed by a thread of its own, its report printed by its first.
#[test]
fn the_ndpi_reader_finds_the_same_protocols() {
    if !installed("ndpiReader") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let passing = [
        "Time:",
        "throughput",
        "duration",
        "traffic from device",
        "Reading packets from",
    ];
    let passing = [
        &passing[..],
        &["Capturing live", "Analysis", "Traffic statistics"],
    ]
    .concat();
    let expected = native(
        dir.path(),
        &format!("ndpiReader -i {}", capture().display()),
    );
    let printed = hosted(dir.path(), "guest:ndpiReader -i @");
    let expected = lasting(&expected, &passing);
    assert!(
        expected.iter().any(|line| line.contains("HTTP")),
        "{expected:?}"
    );
    assert_eq!(expected, lasting(&printed, &passing));
}

/// It compiles its expression at run time, which the option `jit` allows.
#[test]
fn ngrep_finds_the_same_matches() {
    if !installed("ngrep") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let expected = native(
        dir.path(),
        &format!("ngrep -I {} -q GET tcp", capture().display()),
    );
    let printed = hosted(dir.path(), "guest,jit:ngrep -d @ -q GET tcp");
    let passing = ["input:", "interface:", "filter:"];
    let expected = lasting(&expected, &passing);
    assert!(
        expected.iter().any(|line| line.contains("GET /")),
        "{expected:?}"
    );
    assert_eq!(expected, lasting(&printed, &passing));
}

#[test]
fn tcpflow_writes_the_same_files() {
    if !installed("tcpflow") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    native(
        dir.path(),
        &format!("tcpflow -r {} -o native", capture().display()),
    );
    hosted(dir.path(), "guest:tcpflow -i @ -o hosted");
    let files = |folder: &str| -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(dir.path().join(folder))
            .unwrap()
            .map(|e| e.unwrap().path());
        let name = |p: &Path| p.file_name().unwrap().to_string_lossy().into_owned();
        // The report names the command and the time.
        let kept = entries.filter(|p| name(p) != "report.xml");
        kept.map(|p| (name(&p), std::fs::read(&p).unwrap()))
            .collect()
    };
    let (native, hosted) = (files("native"), files("hosted"));
    assert!(native.len() > 10);
    assert_eq!(
        native.keys().collect::<Vec<_>>(),
        hosted.keys().collect::<Vec<_>>()
    );
    assert!(native == hosted);
}

/// It polls the descriptor of its interface, and goes on after the end until a signal tells it to stop.
#[test]
fn p0f_knows_the_same_hosts() {
    if !installed("p0f") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = capture();
    native(
        dir.path(),
        &format!("p0f -r {} -o native.log", file.display()),
    );
    hosted(dir.path(), "guest:p0f -i @ -o hosted.log");
    // Why p0f thinks that a host has changed or is several depends on the moment it runs at (reason=date): by itself
    // it does not say the same from run to run.
    let log = |name: &str| {
        let text = std::fs::read_to_string(dir.path().join(name)).unwrap();
        lasting(&text, &["mod=host change", "mod=ip sharing"])
    };
    assert!(log("native.log").len() > 10);
    assert!(log("native.log") == log("hosted.log"));
}

/// It loads libpcap by itself, behind the preload's scope.
#[test]
fn perl_counts_the_same_bytes() {
    if !installed("perl") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("count.pl");
    let text = r#"use Net::Pcap; my $e; my $n = 0;
my $p = $ARGV[0] eq "@" ? Net::Pcap::open_live("@", 65535, 1, 0, \$e) : Net::Pcap::open_offline($ARGV[0], \$e);
Net::Pcap::loop($p, -1, sub { $n += $_[1]{caplen} }, 0); print "$n bytes\n";"#;
    std::fs::write(&script, text).unwrap();
    let command = |from: &str| format!("perl {} {from}", script.display());
    let expected = native(dir.path(), &command(&capture().display().to_string()));
    if expected.is_empty() {
        println!("skipped: libnet-pcap-perl is not installed");
        return;
    }
    assert_eq!(
        hosted(dir.path(), &format!("guest:{}", command("@"))),
        expected
    );
}

/// It receives into a ring of its own (TPACKET_V2).
#[test]
fn netsniff_ng_writes_the_same_packets() {
    if !installed("netsniff-ng") || !installed("tcpdump") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    hosted(dir.path(), "guest:netsniff-ng -i @ -o hosted.pcap -s");
    let printed = |file: &Path| {
        native(
            dir.path(),
            &format!("tcpdump -tttt -n -e -XX -r {}", file.display()),
        )
    };
    let expected = printed(&capture());
    assert!(expected.lines().count() > 1000);
    assert!(printed(&dir.path().join("hosted.pcap")) == expected);
}

/// A ring of its own (TPACKET_V3), read by a thread, and memory that it shares with other processes; its first thread
/// waits for the signal that ends it.
#[test]
fn nfpcapd_finds_the_same_flows() {
    if !installed("nfpcapd") || !installed("nfdump") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for folder in ["native", "hosted"] {
        std::fs::create_dir(dir.path().join(folder)).unwrap();
    }
    native(
        dir.path(),
        &format!("nfpcapd -r {} -w native", capture().display()),
    );
    hosted(dir.path(), "guest:nfpcapd -i @ -w hosted");
    let flows = |folder: &str| {
        let command =
            format!("nfdump -R {folder} -q -o 'fmt:%ts %td %sap %dap %pr %flg %pkt %byt'");
        let mut lines: Vec<String> = native(dir.path(), &command)
            .lines()
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    };
    assert!(flows("native").len() > 200);
    assert_eq!(flows("native"), flows("hosted"));
}

/// Debian's python3 is linked to fixed addresses. Nearly all of the time is scapy's, which loads for most of a second
/// each time.
#[test]
fn scapy_sniffs_the_same_packets_and_sends() {
    let python = Path::new("/usr/bin/python3");
    if !Path::new("/usr/lib/python3/dist-packages/scapy").exists() {
        println!("skipped: python3-scapy is not installed (scripts/setup.sh test)");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("sniff.py");
    let text = "import sys
from scapy.all import *
where = {'iface': '@'} if sys.argv[1] == '@' else {'offline': sys.argv[1]}
sniff(prn=lambda p: print('%.5f' % p.time, p.summary()), store=0, count=300, **where)
if sys.argv[1] == '@':
    sendp(Ether(src='02:00:00:00:00:01', dst='02:00:00:00:00:02') / ARP(), iface='@0', verbose=0)
";
    std::fs::write(&script, text).unwrap();
    let command = |from: &str| format!("{} {} {from}", python.display(), script.display());
    let expected = native(dir.path(), &command(&capture().display().to_string()));
    assert_eq!(expected.lines().count(), 300);
    let mut caught = Caught::start(dir.path(), &format!("guest:{}", command("@"))).unwrap();
    let mut packets = Packets::read();
    // What it sends is taken with the burst in which it has all that it wants.
    packets.part(0..320, &mut [&mut caught.guest]);
    let sent = std::mem::take(&mut caught.guest.sent);
    let (over, printed) = caught.finish();
    assert!(matches!(over, Over::Exit(0)), "{}", describe(&over));
    assert_eq!(printed, expected);
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].port, &sent[0].bytes[12..14]), (0, &[8, 6][..]));
}

/// Refused before the first packet, with the reason.
#[test]
fn programs_of_several_processes_are_refused_at_once() {
    for (program, word) in [
        ("tshark", "guest:tshark -n -i @"),
        ("pmacctd", "guest:pmacctd -i @ -P print -c src_host"),
    ] {
        if !installed(program) {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let Err(error) = Caught::start(dir.path(), word) else {
            panic!("{program} was started");
        };
        assert!(
            error
                .to_string()
                .contains("a process of its own (fork) was denied"),
            "{error}"
        );
    }
}

/// It asks for the interface's address, opens a raw socket that it does not use, and changes nothing.
#[test]
fn urlsnarf_finds_the_same_requests() {
    if !installed("urlsnarf") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let read = format!("urlsnarf -n -p {}", capture().display());
    // The time in brackets is that of the run.
    let requests = |text: &str| -> Vec<String> {
        let mut lines: Vec<String> = text
            .lines()
            .map(|l| l.split(['[', ']']).step_by(2).collect())
            .collect();
        lines.sort();
        lines
    };
    let expected = requests(&native(dir.path(), &read));
    assert!(expected.len() > 10, "{expected:?}");
    assert_eq!(
        requests(&hosted(dir.path(), "guest:urlsnarf -n -i @")),
        expected
    );
}

/// Five different guests in one thread.
#[test]
fn five_guests_in_a_row_each_see_all() {
    let words = [
        "guest:tcpdump -n -i @",
        "guest:prads -i @ -l prads.log",
        "guest:ndpiReader -i @",
        "guest,jit:ngrep -d @ -q GET tcp",
        "guest:tcpflow -i @ -o flows",
    ];
    if !["tcpdump", "prads", "ndpiReader", "ngrep", "tcpflow"]
        .into_iter()
        .all(installed)
    {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let expected = native(
        dir.path(),
        &format!("tcpdump -n -r {}", capture().display()),
    );
    let mut guests: Vec<Caught> = words
        .iter()
        .map(|w| Caught::start(dir.path(), w).unwrap())
        .collect();
    let mut row: Vec<_> = guests.iter_mut().map(|c| &mut c.guest).collect();
    let mut packets = Packets::read();
    let (took, on) = packets.play(&mut row);
    assert_eq!(on, packets.len());
    assert_eq!(took, vec![packets.len().div_ceil(common::BURST); 5]);
    let printed: Vec<String> = guests.into_iter().map(|c| c.finish().1).collect();
    assert!(printed[0] == expected);
    assert!(printed[2].contains("HTTP") && printed[3].contains("GET /"));
    assert!(dir.path().join("prads.log").exists() && dir.path().join("flows/report.xml").exists());
}
