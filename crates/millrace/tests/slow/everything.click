// A router with all that makes, copies or holds packets: ARP on both links, redirects, errors, options, fragments, a mirror, turns.
elementclass Link { MAC $mac, IP $ip |
  arp :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
  ask :: ARPQuerier($ip, $mac);
  input[0] -> arp;
  arp[0] -> ARPResponder($ip $mac) -> [0] output;
  arp[1] -> [1] ask;
  arp[2] -> [1] output;
  input[1] -> [0] ask -> [0] output;
}

lan :: Link(MAC 02:00:00:00:00:01, IP 10.0.0.254);
wan :: Link(MAC 02:00:00:00:01:01, IP 192.0.2.254);
toLan :: Queue -> ToDevice(lan);
toWan :: Queue -> ToDevice(wan);
FromDevice(lan) -> [0] lan; lan[0] -> toLan;
FromDevice(wan) -> [0] wan; wan[0] -> toWan;
FromDevice(tap) -> Discard;

lan[1] -> Paint(1) -> Strip(14) -> ip :: CheckIPHeader;
wan[1] -> Paint(2) -> Strip(14) -> ip;
ip -> GetIPAddress(16) -> kind :: IPClassifier(dst udp port 9, dst udp port 7, -);

// What needs nothing of all that stays in the function.
kind[0] -> DecIPTTL -> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:01:02) -> toWan;
kind[1] -> turn :: RoundRobinSwitch;
turn[0] -> Unstrip(14) -> toWan;
turn[1] -> Unstrip(14) -> toLan;
kind[2] -> route :: StaticIPLookup(10.0.0.254/32 2, 192.0.2.254/32 2, 10.0.0.0/24 0, 0.0.0.0/0 192.0.2.1 1);

route[0] -> DropBroadcasts -> p0 :: PaintTee(1) -> o0 :: IPGWOptions(10.0.0.254) -> FixIPSrc(10.0.0.254) -> t0 :: DecIPTTL
  -> f0 :: IPFragmenter(576) -> [1] lan;
route[1] -> DropBroadcasts -> p1 :: PaintTee(2) -> o1 :: IPGWOptions(192.0.2.254) -> FixIPSrc(192.0.2.254) -> t1 :: DecIPTTL
  -> f1 :: IPFragmenter(576) -> copy :: Tee;
copy[0] -> [1] wan;
copy[1] -> EtherEncap(0x0800, 02:00:00:00:02:01, 02:00:00:00:02:02) -> ToDevice(tap);
route[2] -> ICMPPingResponder -> route;

p0[1] -> ICMPError(10.0.0.254, redirect, host) -> route;
p1[1] -> ICMPError(192.0.2.254, redirect, host) -> route;
o0[1] -> ICMPError(10.0.0.254, parameterproblem) -> route;
o1[1] -> ICMPError(192.0.2.254, parameterproblem) -> route;
t0[1] -> ICMPError(10.0.0.254, timeexceeded) -> route;
t1[1] -> ICMPError(192.0.2.254, timeexceeded) -> route;
f0[1] -> ICMPError(10.0.0.254, unreachable, needfrag, PMTU 576) -> route;
f1[1] -> ICMPError(192.0.2.254, unreachable, needfrag, PMTU 576) -> route;
