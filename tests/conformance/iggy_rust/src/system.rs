//! PING, GET_STATS, GET_ME, GET_CLIENT, GET_CLIENTS.

use crate::scene::{refused, Scene};
use iggy::client::{Client, SystemClient};
use iggy::system::get_client::GetClient;
use iggy::system::get_clients::GetClients;
use iggy::system::get_me::GetMe;
use iggy::system::get_stats::GetStats;
use iggy::system::ping::Ping;

const INVALID_CLIENT_ID: u32 = 101;
const CLIENT_NOT_FOUND: u32 = 100;

pub async fn play(scene: &Scene) {
    let client = scene.client().await;
    client.ping(&Ping {}).await.unwrap();

    let me = client.get_me(&GetMe {}).await.unwrap();
    assert!(me.address.starts_with("127.0.0.1:"));
    assert_eq!(me.transport, "TCP");
    assert_eq!(me.consumer_groups_count, 0);
    let same = client.get_client(&GetClient { client_id: me.id }).await.unwrap();
    assert_eq!((same.id, same.address), (me.id, me.address.clone()));

    let mut other = scene.client().await;
    let other_id = other.get_me(&GetMe {}).await.unwrap().id;
    let all = client.get_clients(&GetClients {}).await.unwrap();
    assert!(all.iter().any(|one| one.id == me.id && one.address == me.address));
    assert!(all.iter().any(|one| one.id == other_id));
    other.disconnect().await.unwrap();
    assert_eq!(refused(client.get_client(&GetClient { client_id: 0 })).await, INVALID_CLIENT_ID);
    assert_eq!(refused(client.get_client(&GetClient { client_id: 1 })).await, CLIENT_NOT_FOUND);

    let stats = client.get_stats(&GetStats {}).await.unwrap();
    assert!(stats.process_id > 0 && stats.clients_count > 0);
    assert!(stats.memory_usage > 1_000_000 && stats.total_memory > stats.memory_usage);
    assert!(stats.start_time > 0 && !stats.hostname.is_empty() && !stats.kernel_version.is_empty());
}
