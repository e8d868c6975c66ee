//! Options about several machines and other systems, all refused. Facts: `IOzone` 3.489.

use super::{Row, refused};

const CLUSTER: &str = "Several machines";
const MACHINES: &str = "one command line runs on one machine";
const MACHINES_INSTEAD: &str = "start iolab on each machine, and compare with `iolab diff`";

pub(super) const ROWS: &[Row] = &[
    refused("-+m", CLUSTER, "children on other machines", MACHINES, MACHINES_INSTEAD),
    refused("-+h", CLUSTER, "name of this machine", MACHINES, MACHINES_INSTEAD),
    refused("-+t", CLUSTER, "measure the network", MACHINES, MACHINES_INSTEAD),
    refused("-+c", CLUSTER, "internal", MACHINES, MACHINES_INSTEAD),
    refused("-+i", CLUSTER, "internal", MACHINES, MACHINES_INSTEAD),
    refused("-+s", CLUSTER, "internal", MACHINES, MACHINES_INSTEAD),
    refused("-+H", CLUSTER, "an external time server", MACHINES, MACHINES_INSTEAD),
    refused("-+P", CLUSTER, "an external time server", MACHINES, MACHINES_INSTEAD),
    refused("-+U", CLUSTER, "unbuffered I/O of Windows", "this is Linux", "use -I"),
];
