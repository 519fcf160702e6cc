//! GET_CONSUMER_OFFSET, STORE_CONSUMER_OFFSET, and polls that go on from what is stored.

use crate::scene::{number, offsets, refused, Scene, TOPIC};
use iggy::client::{ConsumerOffsetClient, MessageClient};
use iggy::consumer::Consumer;
use iggy::consumer_offsets::get_consumer_offset::GetConsumerOffset;
use iggy::consumer_offsets::store_consumer_offset::StoreConsumerOffset;
use iggy::messages::poll_messages::{PollMessages, PollingStrategy};
use iggy::messages::send_messages::Partitioning;

const INVALID_OFFSET: u32 = 4100;

pub async fn play(scene: &Scene) {
    let client = scene.with_topic(2).await;
    let get = |consumer: u32| GetConsumerOffset {
        consumer: Consumer::new(consumer),
        stream_id: scene.stream_id(),
        topic_id: number(TOPIC),
        partition_id: Some(2),
    };
    let store = |consumer: u32, offset: u64| StoreConsumerOffset {
        consumer: Consumer::new(consumer),
        stream_id: scene.stream_id(),
        topic_id: number(TOPIC),
        partition_id: Some(2),
        offset,
    };
    let next = |consumer: u32| scene.poll_of(Consumer::new(consumer), Some(2), PollingStrategy::next(), 2);
    scene.send(&client, Partitioning::partition_id(2), &["0", "1", "2", "3", "4"]).await;

    let nothing = client.get_consumer_offset(&get(1)).await.unwrap();
    assert_eq!((nothing.partition_id, nothing.current_offset, nothing.stored_offset), (2, 4, 0));
    assert_eq!(offsets(&client.poll_messages(&next(1)).await.unwrap()), [0, 1]);
    assert_eq!(offsets(&client.poll_messages(&next(1)).await.unwrap()), [0, 1], "nothing was stored");

    client.store_consumer_offset(&store(1, 1)).await.unwrap();
    assert_eq!(client.get_consumer_offset(&get(1)).await.unwrap().stored_offset, 1);
    assert_eq!(offsets(&client.poll_messages(&next(1)).await.unwrap()), [2, 3]);
    assert_eq!(refused(client.store_consumer_offset(&store(1, 5))).await, INVALID_OFFSET);

    for expected in [vec![0, 1], vec![2, 3], vec![4], vec![]] {
        let committing = PollMessages { auto_commit: true, ..next(2) };
        assert_eq!(offsets(&client.poll_messages(&committing).await.unwrap()), expected);
    }
    assert_eq!(client.get_consumer_offset(&get(2)).await.unwrap().stored_offset, 4);
    assert_eq!(client.get_consumer_offset(&get(1)).await.unwrap().stored_offset, 1);
}
