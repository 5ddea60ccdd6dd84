//! Guests' sockets: what they are told of their interface, and where they may send.

use crate::common;

use std::net::UdpSocket;
use std::time::Duration;

use common::{Caught, Packets, compile, compile_of};
use millrace_guest::{Over, describe};

fn ended(caught: Caught) -> String {
    let (over, printed) = caught.finish();
    assert!(matches!(over, Over::Exit(0)), "{}", describe(&over));
    printed
}

#[test]
fn queries_know_the_guests_interface_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let told = "names 1 @ index 1 0 @:17";
    let rest = "resolved 1 ready 4 sent 11 10\n";
    for (options, expected) in [
        (
            "",
            format!("address 0.0.0.0 mask 0.0.0.0 mac ..:00 mtu 1500 {told} {rest}"),
        ),
        (
            ",address=192.0.2.7/25,mac=02-00-00-00-00-09",
            format!("address 192.0.2.7 mask 255.255.255.128 mac ..:09 mtu 1500 {told} @:2 {rest}"),
        ),
    ] {
        let word = format!("guest{options}:{} network", program.display());
        let mut caught = Caught::start(dir.path(), &word).unwrap();
        Packets::made(10).play(&mut [&mut caught.guest]);
        let sent: Vec<(u16, Vec<u8>)> = std::mem::take(&mut caught.guest.sent)
            .into_iter()
            .map(|sent| (sent.port, sent.bytes))
            .collect();
        assert_eq!(
            sent,
            [(0, b"frame on @0".to_vec()), (1, b"frame on @".to_vec())]
        );
        let printed = ended(caught);
        assert!(printed.starts_with(&expected), "{printed}");
    }
}

#[test]
fn datagrams_reach_the_address_that_was_named_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
    collector
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let to = collector.local_addr().unwrap();
    let word = format!("guest,send={to}:{} export {}", program.display(), to.port());
    let mut caught = Caught::start(dir.path(), &word).unwrap();
    Packets::made(20).play(&mut [&mut caught.guest]);
    ended(caught);
    let mut got: Vec<u8> = Vec::new();
    let mut bytes = [0; 8];
    while let Ok(length) = collector.recv(&mut bytes) {
        got.extend(&bytes[..length]);
    }
    assert_eq!(got, b"ab".repeat(20));
    // Without the option it does not come to ask for packets.
    let word = format!("guest:{} export {}", program.display(), to.port());
    let error = Caught::start(dir.path(), &word).err().unwrap().to_string();
    assert!(
        error.contains(&format!("sending to {to} was denied")),
        "{error}"
    );
}

/// The kernel's ways to receive by a socket of packets, each with every byte; rings that hold all, and those of one block,
/// which are filled anew many times.
#[test]
fn packets_come_by_a_socket_of_the_guests_own() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile_of("packets", dir.path(), "packets", &[]);
    let mut packets = Packets::read();
    let seen = |wanted: &dyn Fn(&[u8]) -> usize| {
        let parts = packets
            .bytes()
            .map(|data| &data[..wanted(data).min(data.len())]);
        let parts: Vec<&[u8]> = parts.filter(|part| !part.is_empty()).collect();
        let sum: u64 = parts.iter().copied().flatten().map(|b| u64::from(*b)).sum();
        (parts.len(), sum)
    };
    let all = seen(&|_| usize::MAX);
    let tcp = seen(&|data| {
        if data[12..14] == [8, 0] && data[23] == 6 {
            60
        } else {
            0
        }
    });
    let arp = seen(&|data| {
        if data[12..14] == [8, 6] {
            usize::MAX
        } else {
            0
        }
    });
    assert!(tcp.0 > 1000 && arp.0 > 0);
    for (how, (count, sum)) in [
        ("recv", all),
        ("select", all),
        ("poll", all),
        ("message", all),
        ("filter", tcp),
        ("arp", arp),
        ("ring1", all),
        ("ring2", all),
        ("ring3", all),
        ("ring1-small", all),
        ("ring2-small", all),
        ("ring3-small", all),
    ] {
        let word = format!("guest:{} {how}", program.display());
        let mut caught = Caught::start(dir.path(), &word).unwrap();
        let (took, on) = packets.play(&mut [&mut caught.guest]);
        assert_eq!(
            (took[0], on),
            (packets.len().div_ceil(common::BURST), packets.len()),
            "{how}"
        );
        let printed = ended(caught);
        assert!(
            printed.starts_with(&format!("{count} packets, sum {sum}, stamps ")),
            "{how}: {printed}"
        );
        assert!(
            printed.ends_with(&format!("told {count}\n")),
            "{how}: {printed}"
        );
        assert_eq!(printed.contains("stamps 0,"), how != "message", "{printed}");
    }
}

/// A flow exporter of Debian's: NetFlow version 5, a header of 24 bytes and records of 48, packets at 16.
#[test]
fn softflowd_exports_all_packets() {
    if !common::installed("softflowd") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
    collector
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let to = collector.local_addr().unwrap();
    let word = format!("guest,send={to}:softflowd -d -i @ -n {to} -c control -p pid");
    let mut caught = Caught::start(dir.path(), &word).unwrap();
    let mut packets = Packets::read();
    packets.play(&mut [&mut caught.guest]);
    caught.finish();
    let mut count = 0;
    let mut bytes = [0; 2048];
    while let Ok(length) = collector.recv(&mut bytes) {
        assert_eq!(bytes[..2], [0, 5]);
        let (records, _) = bytes[24..length].as_chunks::<48>();
        let number = |r: &[u8; 48]| u32::from_be_bytes([r[16], r[17], r[18], r[19]]);
        count += records.iter().map(number).sum::<u32>();
    }
    let mut expected = 0;
    packets.bursts(|burst| {
        for packet in burst {
            // SAFETY: the packets lie in `packets`, and have at least an Ethernet header.
            #[allow(unsafe_code)]
            let kind = unsafe { std::slice::from_raw_parts(packet.data as *const u8, 14) };
            expected += u32::from(kind[12..14] == [8, 0]);
        }
    });
    assert_eq!(count, expected);
}

#[test]
fn a_program_with_threads_changes_its_user() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let word = format!("guest:{} users", program.display());
    let mut caught = Caught::start(dir.path(), &word).unwrap();
    Packets::made(10).play(&mut [&mut caught.guest]);
    assert!(ended(caught).starts_with("10 packets"));
}
