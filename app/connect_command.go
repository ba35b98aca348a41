package main

import (
	"context"

	"github.com/spf13/cobra"

	"drawbridge/bridge/wire"
)

func (c *cli) connectCommand() *cobra.Command {
	var client string
	cmd := &cobra.Command{
		Use:   "connect",
		Short: "The stdio end, for MCP clients that start a command",
		Long: `Copy MCP messages between standard input and output, one a line, and the running
agent. It ends when the input has ended and everything is answered.

The default client's token is found in the state directory; that of another
client is taken from ` + tokenEnv + `.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.connect(cmd.Context(), client) },
	}
	cmd.Flags().StringVar(&client, "client", "", "connect as the client of this `name`")
	return cmd
}

func (c *cli) connect(ctx context.Context, client string) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	conn, err := c.dial(ctx, client)
	if err != nil {
		return err
	}
	return wire.Stdio(ctx, c.in, c.out, conn, 0)
}
