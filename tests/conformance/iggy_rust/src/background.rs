//! The client's own batching, encryption and polling in the background.

use crate::scene::{message, number, Scene, TOPIC};
use iggy::client::{Client, ConsumerOffsetClient, MessageClient};
use iggy::clients::client::{IggyClient, IggyClientConfig, PollMessagesConfig, SendMessagesConfig, StoreOffsetKind};
use iggy::consumer::Consumer;
use iggy::consumer_offsets::get_consumer_offset::GetConsumerOffset;
use iggy::messages::poll_messages::PollingStrategy;
use iggy::messages::send_messages::Partitioning;
use iggy::utils::crypto::{Aes256GcmEncryptor, Encryptor};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

const KEY: [u8; 32] = [7; 32];
const MESSAGES: u64 = 50;
const PATIENCE: Duration = Duration::from_secs(20);

pub async fn play(scene: &Scene) {
    let plain: Box<dyn Client> = Box::new(scene.with_topic(1).await);
    let config = IggyClientConfig {
        send_messages: SendMessagesConfig { enabled: true, interval: 10, max_messages: 20 },
        poll_messages: PollMessagesConfig {
            interval: 10,
            store_offset_kind: StoreOffsetKind::WhenMessagesAreProcessed,
        },
    };
    let encryptor = Box::new(Aes256GcmEncryptor::new(&KEY).unwrap());
    let client = IggyClient::new(plain, config, None, Some(encryptor));
    let (sender, mut received) = mpsc::unbounded_channel();
    let poll = scene.poll_of(Consumer::new(1), Some(1), PollingStrategy::next(), 7);
    let polling = client.start_polling_messages(poll, move |one| sender.send(one).unwrap(), None);

    for number in 0..MESSAGES {
        let messages = vec![message(&format!("message {number}"))];
        client.send_messages(&mut scene.batch(Partitioning::partition_id(1), messages)).await.unwrap();
    }
    // What is polled in the background is not decrypted by this release.
    let decryptor = Aes256GcmEncryptor::new(&KEY).unwrap();
    for number in 0..MESSAGES {
        let one = timeout(PATIENCE, received.recv()).await.expect("a message comes").unwrap();
        assert_eq!(one.offset, number);
        assert_eq!(decryptor.decrypt(&one.payload).unwrap(), format!("message {number}").into_bytes());
    }
    let get = GetConsumerOffset {
        consumer: Consumer::new(1),
        stream_id: scene.stream_id(),
        topic_id: number(TOPIC),
        partition_id: Some(1),
    };
    timeout(PATIENCE, async {
        while client.get_consumer_offset(&get).await.unwrap().stored_offset != MESSAGES - 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("the last offset is stored");
    polling.abort();
}
