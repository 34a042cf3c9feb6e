//! What each report says, in each of its formats.

mod audit;
mod both_directions;
mod connections;
mod diff;
mod frames;
mod iperf3;
mod kept;
mod latency;
mod ledger;
mod line_rate;
mod live;
mod measure;
mod ministat;
mod report_json;
mod report_markdown;
mod report_text;
mod rr;
mod samples;
mod search;
mod sweep;
mod udp;
mod watch;
