// Plays one scenario of the Go client of Apache Pulsar against a server: main URL SCENARIO STEM.
// It ends with 0 if all was as it should be.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	plog "github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/sirupsen/logrus"
)

const (
	timeout = 20 * time.Second
	quiet   = 400 * time.Millisecond
)

type scenario struct {
	client pulsar.Client
	stem   string
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func same(seen, wanted any) {
	if fmt.Sprint(seen) != fmt.Sprint(wanted) {
		panic(fmt.Sprintf("seen %v, wanted %v", seen, wanted))
	}
}

func (s *scenario) topic(name string) string {
	return "persistent://public/default/" + s.stem + "-" + name
}

func (s *scenario) producer(name string) pulsar.Producer {
	// A transaction may outlast any send timeout: the client insists on none.
	producer, err := s.client.CreateProducer(pulsar.ProducerOptions{Topic: s.topic(name), SendTimeout: -1})
	check(err)
	return producer
}

func (s *scenario) consumer(name string, kind pulsar.SubscriptionType) pulsar.Consumer {
	consumer, err := s.client.Subscribe(pulsar.ConsumerOptions{
		Topic:                       s.topic(name),
		SubscriptionName:            "s",
		Type:                        kind,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	check(err)
	return consumer
}

func (s *scenario) begin(limit time.Duration) pulsar.Transaction {
	transaction, err := s.client.NewTransaction(limit)
	check(err)
	return transaction
}

// Plain messages have a producer of their own: this version of the client (0.19.0) sends whatever a producer batches after
// its first transaction as a part of that transaction.
func send(producer pulsar.Producer, value string, transaction pulsar.Transaction) {
	message := &pulsar.ProducerMessage{Payload: []byte(value), Transaction: transaction}
	_, err := producer.Send(context.Background(), message)
	check(err)
}

func receive(consumer pulsar.Consumer) pulsar.Message {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	message, err := consumer.Receive(ctx)
	check(err)
	return message
}

func values(consumer pulsar.Consumer, count int) []string {
	var found []string
	for range count {
		message := receive(consumer)
		found = append(found, string(message.Payload()))
		check(consumer.Ack(message))
	}
	return found
}

func nothingComes(consumer pulsar.Consumer) {
	ctx, cancel := context.WithTimeout(context.Background(), quiet)
	defer cancel()
	message, err := consumer.Receive(ctx)
	if err == nil {
		panic("came: " + string(message.Payload()))
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		panic(err)
	}
}

func commit(s *scenario) {
	consumer, producer := s.consumer("t", pulsar.Exclusive), s.producer("t")
	transaction := s.begin(time.Minute)
	send(producer, "in", transaction)
	send(s.producer("t"), "behind", nil)
	nothingComes(consumer)
	check(transaction.Commit(context.Background()))
	same(values(consumer, 2), []string{"in", "behind"})
}

func abort(s *scenario) {
	consumer, producer := s.consumer("t", pulsar.Exclusive), s.producer("t")
	transaction := s.begin(time.Minute)
	send(producer, "gone", transaction)
	send(s.producer("t"), "stays", nil)
	check(transaction.Abort(context.Background()))
	same(values(consumer, 1), []string{"stays"})
	nothingComes(consumer)
}

func transform(s *scenario) {
	source, sink := s.producer("in"), s.producer("out")
	input, output := s.consumer("in", pulsar.Shared), s.consumer("out", pulsar.Exclusive)
	for n := range 10 {
		send(source, fmt.Sprint(n), nil)
	}
	move := func(transaction pulsar.Transaction) {
		for range 10 {
			message := receive(input)
			send(sink, string(message.Payload())+"!", transaction)
			check(input.AckWithTxn(message, transaction))
		}
	}
	aborted := s.begin(time.Minute)
	move(aborted)
	check(aborted.Abort(context.Background()))
	nothingComes(output)
	transaction := s.begin(time.Minute)
	move(transaction)
	nothingComes(output)
	check(transaction.Commit(context.Background()))
	same(len(values(output, 10)), 10)
	nothingComes(output)
	nothingComes(input)
}

func expire(s *scenario) {
	consumer, producer := s.consumer("t", pulsar.Exclusive), s.producer("t")
	transaction := s.begin(time.Second)
	send(producer, "gone", transaction)
	send(s.producer("t"), "stays", nil)
	same(values(consumer, 1), []string{"stays"})
	if transaction.Commit(context.Background()) == nil {
		panic("a transaction that timed out was committed")
	}
}

func main() {
	logger := logrus.New()
	logger.SetLevel(logrus.ErrorLevel)
	client, err := pulsar.NewClient(pulsar.ClientOptions{
		URL:               os.Args[1],
		OperationTimeout:  timeout,
		EnableTransaction: true,
		Logger:            plog.NewLoggerWithLogrus(logger),
	})
	check(err)
	defer client.Close()
	plays := map[string]func(*scenario){"commit": commit, "abort": abort, "transform": transform, "timeout": expire}
	plays[os.Args[2]](&scenario{client, os.Args[3]})
	fmt.Println("done")
}
