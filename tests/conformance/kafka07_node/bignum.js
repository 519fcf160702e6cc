// The part of the package "bignum" that prozess uses, on BigInt: the package itself is native code for the Node of 2013.
"use strict";

class BigNumber {
  constructor(value) {
    this.value = value instanceof BigNumber ? value.value : BigInt(value);
  }

  add(other) {
    return new BigNumber(this.value + new BigNumber(other).value);
  }

  eq(other) {
    return this.value === new BigNumber(other).value;
  }

  toBuffer() {
    const buffer = Buffer.alloc(8);
    buffer.writeBigInt64BE(this.value);
    return buffer;
  }

  toString() {
    return this.value.toString();
  }
}

const bignum = (value) => new BigNumber(value);
bignum.fromBuffer = (buffer) => new BigNumber(buffer.readBigInt64BE());
module.exports = bignum;
