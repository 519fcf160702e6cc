//! SEND_MESSAGES and POLL_MESSAGES.

use crate::scene::{message, offsets, refused, values, Scene};
use bytes::Bytes;
use iggy::client::MessageClient;
use iggy::consumer::Consumer;
use iggy::messages::poll_messages::PollingStrategy;
use iggy::messages::send_messages::{Message, Partitioning};
use iggy::models::header::{HeaderKey, HeaderValue};
use iggy::models::messages::MessageState;
use iggy::tcp::client::TcpClient;
use iggy::utils::checksum;
use std::collections::{HashMap, HashSet};

const PARTITION_NOT_FOUND: u32 = 3007;
const INVALID_MESSAGES_COUNT: u32 = 4009;
const EMPTY_MESSAGE_PAYLOAD: u32 = 4024;

pub async fn play(scene: &Scene) {
    let client = scene.with_topic(3).await;
    strategies(scene, &client).await;
    headers(scene, &client).await;
    partitioning(scene, &client).await;
    sizes(scene, &client).await;
    refusals(scene, &client).await;
}

async fn strategies(scene: &Scene, client: &TcpClient) {
    let nothing = scene.poll(client, 1, PollingStrategy::first(), 10).await;
    assert!(nothing.messages.is_empty());
    for values in [["0", "1"], ["2", "3"], ["4", "5"]] {
        scene.send(client, Partitioning::partition_id(1), &values).await;
        tokio::time::sleep(std::time::Duration::from_millis(5)).await; // batches of one time each
    }
    let all = scene.poll(client, 1, PollingStrategy::first(), 100).await;
    assert_eq!((all.partition_id, all.current_offset), (1, 5));
    assert_eq!(values(&all), ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(offsets(&all), [0, 1, 2, 3, 4, 5]);
    assert_eq!(all.messages.iter().map(|one| one.id).collect::<HashSet<u128>>().len(), 6);
    for one in &all.messages {
        assert_eq!(one.state, MessageState::Available);
        assert_eq!(one.checksum, checksum::calculate(&one.payload));
        assert!(one.id != 0 && one.headers.is_none() && one.timestamp > 1_600_000_000_000_000);
    }
    assert_eq!(offsets(&scene.poll(client, 1, PollingStrategy::offset(1), 3).await), [1, 2, 3]);
    assert_eq!(offsets(&scene.poll(client, 1, PollingStrategy::last(), 3).await), [3, 4, 5]);
    let late = all.messages[2].timestamp;
    assert_eq!(offsets(&scene.poll(client, 1, PollingStrategy::timestamp(late), 3).await), [2, 3, 4]);
    assert!(scene.poll(client, 1, PollingStrategy::offset(6), 3).await.messages.is_empty());
    assert!(scene.poll(client, 1, PollingStrategy::timestamp(1), 3).await.messages.is_empty());
}

async fn headers(scene: &Scene, client: &TcpClient) {
    let key = |name: &str| HeaderKey::new(name).unwrap();
    let sent = HashMap::from([
        (key("raw"), HeaderValue::from_raw(&[0, 255]).unwrap()),
        (key("string"), "text".parse().unwrap()),
        (key("bool"), HeaderValue::from_bool(true).unwrap()),
        (key("int8"), HeaderValue::from_int8(-8).unwrap()),
        (key("int16"), HeaderValue::from_int16(-16).unwrap()),
        (key("int32"), HeaderValue::from_int32(-32).unwrap()),
        (key("int64"), HeaderValue::from_int64(-64).unwrap()),
        (key("int128"), HeaderValue::from_int128(-(1 << 100)).unwrap()),
        (key("uint8"), HeaderValue::from_uint8(8).unwrap()),
        (key("uint16"), HeaderValue::from_uint16(16).unwrap()),
        (key("uint32"), HeaderValue::from_uint32(32).unwrap()),
        (key("uint64"), HeaderValue::from_uint64(1 << 63).unwrap()),
        (key("uint128"), HeaderValue::from_uint128(1 << 127).unwrap()),
        (key("float32"), HeaderValue::from_float32(0.5).unwrap()),
        (key("float64"), HeaderValue::from_float64(-1.25).unwrap()),
    ]);
    let id = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;
    let with_headers = Message::new(Some(id), Bytes::from_static(b"with headers"), Some(sent.clone()));
    let messages = vec![message("plain"), with_headers, message("plain again")];
    client.send_messages(&mut scene.batch(Partitioning::partition_id(2), messages)).await.unwrap();
    let polled = scene.poll(client, 2, PollingStrategy::first(), 10).await;
    assert_eq!(values(&polled), ["plain", "with headers", "plain again"]);
    assert_eq!(polled.messages[1].id, id);
    assert_eq!(polled.messages[1].headers, Some(sent));
    assert!(polled.messages[0].headers.is_none() && polled.messages[2].headers.is_none());
}

async fn partitioning(scene: &Scene, client: &TcpClient) {
    let mut ends = Vec::new();
    for partition in 1..=3 {
        ends.push(scene.poll(client, partition, PollingStrategy::last(), 1).await.current_offset);
    }
    for value in ["a", "b", "c"] {
        scene.send(client, Partitioning::balanced(), &[value]).await;
    }
    let mut found = Vec::new();
    for partition in 1..=3 {
        found.extend(values(&scene.poll(client, partition, PollingStrategy::last(), 1).await));
    }
    found.sort();
    assert_eq!(found, ["a", "b", "c"]);

    let keys = [
        Partitioning::messages_key_str("a key").unwrap(),
        Partitioning::messages_key_u32(1),
        Partitioning::messages_key_u64(2),
        Partitioning::messages_key_u128(3),
    ];
    for key in keys {
        let value = format!("keyed {:?}", key.value);
        for _ in 0..2 {
            scene.send(client, Partitioning::from_partitioning(&key), &[&value]).await;
        }
        let mut holders = 0;
        for partition in 1..=3 {
            let last = values(&scene.poll(client, partition, PollingStrategy::last(), 2).await);
            holders += u32::from(last == [value.clone(), value.clone()]);
        }
        assert_eq!(holders, 1, "two messages of one key are in one partition");
    }
}

async fn sizes(scene: &Scene, client: &TcpClient) {
    let start = scene.poll(client, 3, PollingStrategy::last(), 1).await.current_offset + 1;
    let thousand: Vec<String> = (0..1000).map(|number| format!("{number:0>1000}")).collect();
    let values_sent: Vec<&str> = thousand.iter().map(String::as_str).collect();
    scene.send(client, Partitioning::partition_id(3), &values_sent).await;
    assert_eq!(values(&scene.poll(client, 3, PollingStrategy::offset(start), 1000).await), thousand);
    let part = scene.poll(client, 3, PollingStrategy::offset(start + 500), 10).await;
    assert_eq!(values(&part), thousand[500..510]);
    let large = "x".repeat(9_000_000);
    scene.send(client, Partitioning::partition_id(3), &[&large]).await;
    assert_eq!(values(&scene.poll(client, 3, PollingStrategy::last(), 1).await), [large]);
}

async fn refusals(scene: &Scene, client: &TcpClient) {
    let nowhere = vec![message("nowhere")];
    assert_eq!(
        refused(client.send_messages(&mut scene.batch(Partitioning::partition_id(4), nowhere))).await,
        PARTITION_NOT_FOUND
    );
    let empty = vec![message("")];
    assert_eq!(
        refused(client.send_messages(&mut scene.batch(Partitioning::partition_id(1), empty))).await,
        EMPTY_MESSAGE_PAYLOAD
    );
    let none = scene.poll_of(Consumer::new(1), Some(1), PollingStrategy::first(), 0);
    assert_eq!(refused(client.poll_messages(&none)).await, INVALID_MESSAGES_COUNT);
    // The connection has survived all of it.
    assert!(!scene.poll(client, 1, PollingStrategy::first(), 1).await.messages.is_empty());
}
