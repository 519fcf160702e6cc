//! Two halves of a test between which a Kafka client reads a topic and writes to it.

use crate::scene::{message, values, Scene};
use bytes::Bytes;
use iggy::client::MessageClient;
use iggy::messages::poll_messages::PollingStrategy;
use iggy::messages::send_messages::{Message, Partitioning};
use iggy::models::header::{HeaderKey, HeaderValue};
use std::collections::HashMap;

pub async fn write(scene: &Scene) {
    let client = scene.with_topic(1).await;
    let headers = HashMap::from([(HeaderKey::new("name").unwrap(), "value".parse().unwrap())]);
    let with_header = Message::new(None, Bytes::from_static(b"with a header"), Some(headers));
    let messages = vec![message("plain"), with_header];
    client.send_messages(&mut scene.batch(Partitioning::partition_id(1), messages)).await.unwrap();
}

pub async fn read(scene: &Scene) {
    let client = scene.client().await;
    let polled = scene.poll(&client, 1, PollingStrategy::first(), 10).await;
    assert_eq!(values(&polled), ["plain", "with a header", "of Kafka"]);
    let header = |index: usize, name: &str| -> Option<&HeaderValue> {
        polled.messages[index].headers.as_ref().and_then(|found| found.get(&HeaderKey::new(name).unwrap()))
    };
    assert_eq!(header(1, "name").unwrap().as_str().unwrap(), "value");
    assert_eq!(header(2, "k").unwrap().as_raw().unwrap(), b"v");
}
