//! Ordinary functions of which clang keeps 32 bits of the packet's addresses, in 4 bytes of the stack among others: they
//! run as they are written.

use millrace::Make;
use millrace::packet_test::execute;
use millrace_traffic::language::Case;

use super::of_repository;

const CASE: &str = "\
LAN: eth / ip 10.0.0.1 > 192.0.2.1 ttl 64 / tcp 1234 > 80 syn
  -> WAN: eth / ip 10.0.0.1 > 192.0.2.1 ttl 63 / tcp 1234 > 80 syn
LAN: eth / vlan 5 / vlan 6 / ip 10.0.0.1 > 192.0.2.1 ttl 2 / udp 1234 > 80 / payload \"hello\"
  -> WAN: eth / vlan 5 / vlan 6 / ip 10.0.0.1 > 192.0.2.1 ttl 1 / udp 1234 > 80 / payload \"hello\"
LAN: eth / ip 10.0.0.1 > 192.0.2.1 ttl 1 / udp 1234 > 80
  -> drop ttl
LAN: eth / ip6 2001:db8::1 > 2001:db8:f::2 / icmp6 echo 9 1
  -> WAN
LAN: eth / ip 10.0.0.1 > 192.0.2.1 / icmp unreachable 1 / payload 00
  -> drop
state seen = 3
";

#[test]
fn addresses_kept_in_32_bits() {
    let source = of_repository("crates/check/tests/admitted/ttl_behind_flow.c");
    let function = millrace::find(&source).unwrap();
    let function = function.load(&Make::default(), &mut |_| {}).unwrap();
    let case = Case::parse("case.pkt", CASE).unwrap();
    for burst in [1, 32] {
        if let Err(failed) = execute(&function, &case, &[], burst) {
            panic!("line {}: {}", failed.line, failed.message);
        }
    }
}
