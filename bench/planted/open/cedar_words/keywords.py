from cedar.loop import train

train()
