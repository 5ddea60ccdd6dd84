use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::word::kind_of;
use super::{InputOptions, KINDS, PortError, Way, beside, input, joined, output, spelled};

static STOP: AtomicBool = AtomicBool::new(false);
const OPTIONS: InputOptions = InputOptions {
    loops: Some(1),
    stop: &STOP,
};

#[test]
fn an_unknown_kind_lists_those_there_are() {
    let Err(error) = input("pigeon:eth0", &OPTIONS) else {
        panic!("opened")
    };
    assert_eq!(error.to_string(), "there is no port of kind `pigeon:`");
    for kind in KINDS {
        assert!(error.help().contains(kind.form), "{}", error.help());
    }
}

#[test]
fn a_word_is_a_file_unless_it_has_a_scheme() {
    for word in ["a.pcap", "-", "./a:b.pcap", "C:x", "dir/mem:x"] {
        assert_eq!(kind_of(word).unwrap().0.scheme, "", "{word}");
    }
    assert_eq!(kind_of("mem:a.pcap").unwrap().1, "a.pcap");
}

#[test]
fn arguments_of_a_driver_stay_with_their_port() {
    let split = |list: &str| joined(&list.split(',').map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(
        split("dpdk:net_pcap0,rx_pcap=a,tx_pcap=b?ring=64,dpdk:net_ring0,c.pcap,x=y"),
        [
            "dpdk:net_pcap0,rx_pcap=a,tx_pcap=b?ring=64",
            "dpdk:net_ring0",
            "c.pcap",
            "x=y"
        ]
    );
    assert_eq!(split("a.pcap,b=c"), ["a.pcap", "b=c"]);
    assert_eq!(split("dpdk:net_ring0,./b=c"), ["dpdk:net_ring0", "./b=c"]);
}

#[test]
fn paths_of_a_word_begin_at_a_folder() {
    let folder = Path::new("/srv/edge");
    for (word, full) in [
        ("a.pcap", "/srv/edge/a.pcap"),
        ("/tmp/a.pcap", "/tmp/a.pcap"),
        ("-", "-"),
        ("mem:x/a.pcap", "mem:/srv/edge/x/a.pcap"),
        ("null:", "null:"),
        ("vnic:a.pcap?rate=1M", "vnic:/srv/edge/a.pcap?rate=1M"),
        ("afpacket:eth0?blocks=8", "afpacket:eth0?blocks=8"),
        (
            "tap:t0?record=r.pcapng&drop=0.5",
            "tap:t0?record=/srv/edge/r.pcapng&drop=0.5",
        ),
        ("pigeon:x", "pigeon:x"),
    ] {
        assert_eq!(beside(word, folder), full);
    }
}

#[test]
fn a_word_is_read_without_opening_anything() {
    for (word, way) in [
        ("afpacket:nothing0?blocks=8&drop=0.5", Way::Both),
        ("afxdp:nothing0?ring=64", Way::In),
        ("tap:t0?mtu=1400", Way::Out),
        ("vnic:nothing.pcap?rate=1M", Way::Both),
        ("xdp:nothing0?mode=native", Way::Both),
        ("mem:nothing.pcap", Way::In),
        ("nothing.pcap", Way::Out),
        ("null:", Way::Out),
    ] {
        assert!(spelled(word, way).is_ok(), "{word}");
    }
    for (word, way, what) in [
        ("pigeon:x", Way::In, "no port of kind"),
        ("afpacket:x?block=8", Way::Both, "no such option"),
        ("afpacket:x?blocks=1", Way::Both, "from 2 to 4096"),
        ("afxdp:x?ring=65", Way::Both, "a power of two"),
        ("tap:a-name-of-an-interface", Way::Both, "no name"),
        ("tap:x?drop=2", Way::Both, "a share"),
        ("vnic:", Way::Both, "names no file"),
        ("mem:", Way::In, "names no file"),
        ("mem:x.pcap", Way::Out, "cannot be written to"),
        ("null:", Way::In, "cannot be read from"),
        ("x.pcap", Way::Both, "a capture goes one way"),
        ("xdp:x?mode=fast", Way::Both, "mode"),
    ] {
        let error = spelled(word, way).unwrap_err().to_string();
        assert!(error.contains(what), "{word}: {error}");
    }
}

#[test]
fn packets_go_one_way_only() {
    assert!(matches!(
        input("null:", &OPTIONS),
        Err(PortError::Direction { .. })
    ));
    assert!(matches!(
        output("mem:a.pcap", &[]),
        Err(PortError::Direction { .. })
    ));
}
