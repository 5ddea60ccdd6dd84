// 3 NAPTs, one behind the other: the nested NAT of carriers (RFC 6888).
require(library napt.clickinc)

n1 :: Napt(192.0.2.1, MAC 02:00:00:00:01:01);
n2 :: Napt(192.0.2.2, MAC 02:00:00:00:02:01);
n3 :: Napt(192.0.2.3, MAC 02:00:00:00:03:01);

FromDevice(inside) -> [0] n1;
FromDevice(outside) -> [1] n3;
n1 [1] -> [0] n2; n2 [0] -> [1] n1;
n2 [1] -> [0] n3; n3 [0] -> [1] n2;
n1 [0] -> Queue -> ToDevice(inside);
n3 [1] -> Queue -> ToDevice(outside);
