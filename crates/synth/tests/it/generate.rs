//! Random configurations of the classes that are synthesised: what nobody would write, but somebody may.

use std::fmt::Write;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// An element's text, and how many outputs are to be connected.
fn element(rng: &mut ChaCha8Rng, marked: bool, at: usize) -> (String, usize) {
    let mut pick = |n: u32| rng.random_range(0..n);
    let address = |n: u32| {
        format!(
            "{}.{}.0.{}",
            [10, 192, 224, 0][n as usize % 4],
            n / 4 % 2,
            n / 8 % 3
        )
    };
    match pick(if marked { 24 } else { 6 }) {
        0 | 1 => (format!("MarkIPHeader({at})"), 1),
        2 => (
            format!("CheckIPHeader(OFFSET {at}, CHECKSUM {})", pick(4) > 0),
            1 + pick(2) as usize,
        ),
        3 => {
            let patterns = [
                "12/0800",
                "12/0806 20/0001",
                "!12/0800",
                "0/01%01",
                "14/45",
                "23/11 34/04%0c",
                "-",
                // What a packet carries, behind all headers.
                "66/505554",
                "66/504f5354",
                "54/474554",
                "54/47455420 58/2f",
                "42/00%80 60/0102030405060708",
                "!46/0000",
            ];
            let count = 1 + pick(3) as usize;
            let some: Vec<&str> = (0..count).map(|_| patterns[pick(13) as usize]).collect();
            (format!("Classifier({})", some.join(", ")), count)
        }
        4 if pick(3) == 0 => (
            format!(
                "HostEtherFilter(02:00:00:00:00:01, {}, {})",
                pick(2) == 0,
                pick(2) == 0
            ),
            1 + pick(2) as usize,
        ),
        4 => ("DropBroadcasts".into(), 1),
        5 => (
            [
                "Null",
                "Counter",
                "Strip(2) -> Unstrip(2)",
                "Queue -> Unqueue",
            ][pick(4) as usize]
                .into(),
            1,
        ),
        6 | 7 => ("DecIPTTL".into(), 1 + pick(2) as usize),
        8 => (format!("DecIPTTL(MULTICAST {})", pick(2) == 0), 1),
        9 | 10 => {
            let count = 1 + pick(3) as usize;
            let routes: Vec<String> = (0..3)
                .map(|_| {
                    let gateway = if pick(3) == 0 {
                        format!("{} ", address(pick(24)))
                    } else {
                        String::new()
                    };
                    format!(
                        "{}/{} {gateway}{}",
                        address(pick(24)),
                        [0, 1, 8, 16, 32][pick(5) as usize],
                        pick(count as u32)
                    )
                })
                .chain((0..count).map(|n| format!("1.{n}.0.0/16 {n}")))
                .collect();
            (format!("StaticIPLookup({})", routes.join(", ")), count)
        }
        11..=13 => {
            let tests = [
                "tcp",
                "udp",
                "icmp",
                "src host 10.0.0.1",
                "dst net 10.0.0.0/8",
                "src port 80 or 81",
                "dst port > 1000",
                "tcp opt syn",
                "tcp src host 10.0.0.1",
                "not udp dst port 53",
                "port < 1024",
                "src and dst port <= 100",
                "src and dst port != 80",
                "dst port >= 0",
                "port & 0xff == 0x150",
                "tcp opt 18",
                "ip ect",
                "ip ce",
                "ip ect 2",
                "ip[0] & 0xf0 == 0x45",
                "ip[8] & 3 > 1",
                "tcp[12:2] & 0xf03f == 0x5002",
                "udp[4:2] > 8",
                "ether src 2:0:0:0:0:9",
                "ether host ff:ff:ff:ff:ff:ff",
                "src net 192.0.0.0 mask 255.0.255.0",
                "tcpudp and ip unfrag",
                "icmp type != 8",
                "proto 6 or 17",
                "ip dscp >= 8",
                "ip id & 0x8001 == 1",
                "ip frag",
                "ip unfrag",
                "ip ttl < 5",
                "ip hl > 5",
                "ip[6:2] & 0x3fff != 0",
                "ip len >= 100",
                "icmp type 8",
                "ip dscp 3",
                "ip tos 4",
                "transp[0:4] == 0x04000050",
                "ip[12:2] <= 0x0a00",
                "host 192.0.0.1",
                "not port 53",
                "tcp win 0",
                "ip vers 4",
                "ip[19] & 128 != 0",
                "port 80 and host != 10.0.0.1",
                "ip ttl & 3 == 1",
                "ip[40:4] == 0x47455420",
                "ip[52] & 15 == 3",
                "transp[20:4] == 0x50555420",
            ];
            let condition = |pick: &mut dyn FnMut(u32) -> u32| -> String {
                let mut one = || tests[pick(tests.len() as u32) as usize];
                match (one(), one(), one()) {
                    (a, b, c) if a.len() % 3 == 0 => format!("({a}) and not ({b}) or ({c})"),
                    (a, b, _) if a.len() % 3 == 1 => format!("({a}) && ({b})"),
                    (a, b, c) => format!("({a}) ? ({b}) : ({c})"),
                }
            };
            if pick(2) == 0 {
                let count = 1 + pick(3) as usize;
                let some: Vec<String> = (0..count).map(|_| condition(&mut pick)).collect();
                (format!("IPClassifier({})", some.join(", ")), count)
            } else {
                let some: Vec<String> = (0..3)
                    .map(|_| {
                        format!(
                            "{} {}",
                            ["allow", "deny", "1"][pick(3) as usize],
                            condition(&mut pick)
                        )
                    })
                    .collect();
                (format!("IPFilter({}, allow all)", some.join(", ")), 2)
            }
        }
        14 => (
            [
                "GetIPAddress(IP dst)",
                "SetIPAddress(10.0.0.9)",
                "SetIPDSCP(3)",
                "StoreIPAddress(10.9.0.1, src)",
                "StoreIPAddress(dst)",
                "StoreIPAddress(10.9.0.2, dst)",
                "SetIPDSCP(63)",
                "GetIPAddress(IP src)",
                "MarkEtherHeader",
            ][pick(9) as usize]
                .into(),
            1,
        ),
        15 => (
            ["Paint(1)", "Paint(255)", "Paint(2, 21)", "Paint(0)"][pick(4) as usize].into(),
            1,
        ),
        17 => ("PaintSwitch".into(), 1 + pick(3) as usize),
        18 => (format!("StoreIPAddress({}, dst)", address(pick(24))), 2),
        19 => (
            [
                "Strip(20) -> MarkIPHeader",
                "Strip(4) -> Unstrip(4)",
                "Strip(20) -> CheckIPHeader",
                "StripToNetworkHeader -> Null",
                "Strip(60) -> Null",
                "Strip(20) -> Unstrip(20)",
            ][pick(6) as usize]
                .into(),
            1,
        ),
        20 => (
            [
                "StripIPHeader",
                "IPEncap(4, 10.0.0.1, 10.0.0.2)",
                "VLANEncap(5)",
                "VLANDecap",
                "IPMirror",
                "EtherMirror",
                "Truncate(30)",
                "StoreData(9, \\<11>)",
                "RoundRobinSwitch",
                "MarkIPCE(true)",
                "SetIPChecksum",
                "CheckUDPHeader",
                "Search(E)",
                "Print(seen)",
                "IPPrint",
                "SetPacketType(MULTICAST)",
                "SetPacketType(HOST)",
                "StoreEtherAddress(02:00:00:00:00:08, 0)",
                "StoreEtherAddress(02:00:00:00:00:08, 3)",
            ][pick(19) as usize]
                .into(),
            1,
        ),
        21 => (
            format!(
                "CheckIPHeader(OFFSET {at}, BADSRC 10.0.0.1 {}, GOODDST {})",
                address(pick(24)),
                address(pick(24))
            ),
            1 + pick(2) as usize,
        ),
        22 => (format!("CheckIPHeader2(OFFSET {at})"), 1 + pick(2) as usize),
        16 if pick(2) == 0 => (
            format!("CheckLength({})", [30, 46, 60, 1000][pick(4) as usize]),
            1 + pick(2) as usize,
        ),
        16 => ("CheckPaint(1)".into(), 1 + pick(2) as usize),
        _ => (
            [
                "IPFragmenter(100)",
                "IPGWOptions(10.0.0.1)",
                "PaintTee(1) [1] -> Discard",
                "ICMPError(10.0.0.1, timeexceeded)",
            ][pick(3) as usize]
                .to_owned(),
            1,
        ),
    }
}

/// A configuration: elements in a row, each of whose outputs leads to one further on.
pub fn configuration(rng: &mut ChaCha8Rng) -> String {
    let count = rng.random_range(3..12);
    turning(rng, count)
}

/// A configuration for a row of them: what enters by one device leaves by the other, so that no packet is sent back and forth.
pub fn through(rng: &mut ChaCha8Rng) -> String {
    let count = rng.random_range(1..7);
    let text = turning(rng, count);
    // Both ends of the one way are the other device, and the way back is one of its own.
    let text = text
        .replace("FromDevice(b) -> e0;\n", "")
        .replace(
            "out0 :: ToDevice(a); out1 :: ToDevice(b);",
            "out1 :: ToDevice(b);",
        )
        .replace("-> Queue -> out0;", "-> q :: Queue -> Unqueue -> out1;");
    let back = [
        "Null",
        "Strip(14) -> MarkIPHeader -> DecIPTTL -> Unstrip(14)",
        "Strip(14) -> CheckIPHeader -> EtherEncap(0x0800, 02:00:00:00:00:05, 02:00:00:00:00:06)",
        "DropBroadcasts -> Classifier(12/0800)",
        "MarkIPHeader(14) -> IPFilter(deny udp dst port 53, allow all)",
        "EtherRewrite(ff:ff:ff:ff:ff:ff, 02:00:00:00:00:07) -> Queue",
    ];
    let back = back[rng.random_range(0..back.len())];
    format!("{text}FromDevice(b) -> {back} -> ToDevice(a);\n")
}

fn turning(rng: &mut ChaCha8Rng, count: usize) -> String {
    // Where headers are: behind what is taken away, or behind one or two tags, or at odd places.
    let stripped = rng.random_range(0..3) > 0;
    let at = match rng.random_range(0..8) {
        _ if stripped => 0,
        0 => 18,
        1 => 22,
        2 => 15,
        3 => 12,
        _ => 14,
    };
    let mut text = String::from("FromDevice(a) -> e0 :: Null;\nFromDevice(b) -> e0;\n");
    if stripped {
        text = text.replace("Null", "Strip(14)");
    }
    text.push_str("out0 :: ToDevice(a); out1 :: ToDevice(b); no :: Discard;\n");
    let class = if stripped {
        "EtherEncap(0x0800, "
    } else {
        "EtherRewrite("
    };
    let _ = writeln!(
        text,
        "enc0 :: {class}02:00:00:00:00:01, 02:00:00:00:00:02) -> Queue -> out0;"
    );
    let _ = writeln!(
        text,
        "enc1 :: {class}02:00:00:00:00:03, 02:00:00:00:00:04) -> out1;"
    );
    let mut links = String::new();
    let mut outputs = vec![("e0".to_owned(), 1)];
    for n in 1..=count {
        let (class, ports) = element(rng, n > 1, at);
        let (name, head) = (format!("e{n}"), format!("x{n}"));
        if class.contains("->") && !class.contains("[1]") {
            let (first, last) = class.split_once(" -> ").unwrap();
            let _ = writeln!(text, "{name} :: {first} -> {head} :: {last};");
            outputs.push((head, ports));
        } else if class.contains("[1]") {
            let (first, _) = class.split_once(' ').unwrap();
            let _ = writeln!(text, "{name} :: {first}; {name} [1] -> Discard;");
            outputs.push((name, ports));
        } else {
            let _ = writeln!(text, "{name} :: {class};");
            outputs.push((name, ports));
        }
    }
    for (n, (name, ports)) in outputs.iter().enumerate() {
        for port in 0..*ports {
            let to = match rng.random_range(0..5) {
                _ if n == 0 => "e1".to_owned(),
                0..=2 if n < count => format!("e{}", n + 1),
                3 if n < count => format!("e{}", rng.random_range(n + 1..=count)),
                4 if port > 0 => "no".into(),
                k => format!("enc{}", k % 2),
            };
            let _ = writeln!(links, "{name} [{port}] -> {to};");
        }
    }
    // Inputs that nothing leads to are connected by nobody: give them one packet's way.
    for n in 1..=count {
        if !links.contains(&format!("-> e{n};")) {
            let _ = writeln!(links, "Idle -> e{n};");
        }
    }
    for name in ["enc0", "enc1", "no"] {
        if !links.contains(&format!("-> {name};")) {
            let _ = writeln!(links, "Idle -> {name};");
        }
    }
    text + &links
}
